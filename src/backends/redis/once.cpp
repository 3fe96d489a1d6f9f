// What one server remembers of jobs for `dlock once`.  On several servers nothing is remembered:
// a majority that has a mark today need not have it any more when it has restarted.
//
// Marks are read by plain commands that write nothing, so that a user who may only read can look.
// The server's clock is asked in the same breath: it may be read a moment later than the mark,
// which costs that as much of its time.
#include <algorithm>

#include "backends/redis/mark_entry.hpp"
#include "backends/redis/node.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::redis {
namespace {

constexpr std::size_t kEntriesAtOnce = 100;  // a reply has no more than as many records

Command to_read(const std::string& key) {
  return {"GETRANGE", key, "0", std::to_string(kLongestEntry)};
}

Error not_an_entry(const std::string& shown, const std::string& key) {
  return {Errc::conflict, shown + ": key " + util::in_quotes(key) +
                              " was not written by dlock once; delete it, or choose another --key "
                              "or --prefix"};
}

// Of the server's TIME, in ms.
std::optional<std::int64_t> clock_in(const Reply& time) {
  if (!time.is("*$$")) return std::nullopt;
  const auto seconds = util::parse_int(time.at(0).text, 0, INT64_MAX / 2'000);
  const auto micros = util::parse_int(time.at(1).text, 0, 999'999);
  if (!seconds || !micros) return std::nullopt;
  return *seconds * 1'000 + *micros / 1'000;
}

}  // namespace

Result<std::vector<Result<std::optional<Mark>>>> Node::read_marks(std::span<const MarkName> names,
                                                                  Deadline deadline) {
  std::vector<Command> commands;
  for (const MarkName& name : names) commands.push_back(to_read(entry_of(prefix_, name)));
  commands.push_back({"TIME"});
  const auto replies = connection_.ask(commands, patience(deadline), Cancel());
  if (!replies) return replies.error();
  for (const Reply& reply : replies.value()) {
    const bool is_another_type = reply.says("WRONGTYPE");
    if (reply.is_error() && !is_another_type) return server_error(address(), reply.text);
  }
  const auto now = clock_in(replies.value().back());
  if (!now) return connection_.unexpected_reply();
  std::vector<Result<std::optional<Mark>>> out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Reply& text = replies.value()[i];
    if (!text.is("$") && !text.is_error()) return connection_.unexpected_reply();
    if (text.is("$") && text.text.empty()) {
      out.emplace_back(std::nullopt);
      continue;
    }
    const auto entry = text.is_error() ? std::nullopt : parse_entry(text.text, *now);
    if (entry) {
      out.emplace_back(mark_in(*entry, names[i]));
    } else {
      out.emplace_back(not_an_entry(address().shown, entry_of(prefix_, names[i])));
    }
  }
  return out;
}

Result<std::optional<Mark>> Node::find_mark(const MarkName& name, Deadline deadline) {
  auto read = read_marks({&name, 1}, deadline);
  if (!read) return read.error();
  return std::move(read->front());
}

// What is no entry is nothing here: it must not hide the others.
Result<std::vector<Mark>> Node::list_marks(std::string_view key_prefix, Deadline deadline) {
  const auto found = scan({"{*}:done:*"}, deadline, Cancel());
  if (!found) return found.error();
  std::vector<MarkName> names;
  for (const std::string& key : found.value()[0]) {
    auto name = mark_of_entry(key, prefix_);
    if (name && name->key.starts_with(key_prefix)) names.push_back(std::move(*name));
  }
  std::sort(names.begin(), names.end());
  std::vector<Mark> out;
  for (std::span<const MarkName> rest = names; !rest.empty();) {
    const auto some = rest.first(std::min(kEntriesAtOnce, rest.size()));
    auto read = read_marks(some, deadline);
    if (!read) return read.error();
    for (auto& mark : *read) {
      if (mark && *mark) out.push_back(std::move(**mark));
    }
    rest = rest.subspan(some.size());
  }
  return out;
}

Result<Completed> Node::complete(const Request& request, const Completion& completion,
                                 std::optional<std::uint64_t> fence, Deadline deadline,
                                 Cancel cancel) {
  const Names its = names(request.key);
  const std::string key = entry_of(prefix_, {request.key, completion.period});
  const Millis remember = std::min(completion.remember, kLongestKept);
  const auto reply = run(
      kComplete, "*:", its, {its.waiter + request.owner.id, its.revoked + request.owner.id, key},
      {request.owner.id, "x", rank_of(fence.value_or(0)), std::to_string(remember.count()),
       format_mark(request.owner, fence, remember)},
      deadline, cancel);
  if (!reply) return reply.error();
  const Reply& answer = reply.value();
  if (answer.at(0).number() == 2) return not_an_entry(address().shown, key);
  if (answer.at(0).number() == 1) return Completed{.done = true};
  return Completed{.why = answer.at(1).text, .found = answer.at(2).text};
}

Result<bool> Node::forget_mark(const MarkName& name, Deadline deadline) {
  const std::string key = entry_of(prefix_, name);
  const auto reply =
      run(kForget, ":", names(name.key), {key}, {"", ""}, patience(deadline), Cancel());
  if (!reply) return reply.error();
  if (reply.value().number() < 0) return not_an_entry(address().shown, key);
  return reply.value().number() == 1;
}

// To set what must not be there and must be there can never be done, and is refused by name: but
// first the server looks whether this user may write that key.
Result<void> Node::prepare_marks(std::string_view key, Deadline deadline) {
  const std::string entry = entry_of(prefix_, {std::string(key), ""});
  const std::vector<Command> commands{{"SET", entry, "", "NX", "XX"},
                                      {"CONFIG", "GET", "appendonly"},
                                      {"CONFIG", "GET", "save"},
                                      {"CONFIG", "GET", "maxmemory"},
                                      {"CONFIG", "GET", "maxmemory-policy"}};
  const auto replies = connection_.ask(commands, patience(deadline), Cancel());
  if (!replies) return replies.error();
  const Reply& probe = replies.value()[0];
  if (probe.is_error()) {
    auto error = server_error(address(), probe.text);
    if (error.code == Errc::denied) return error;
  }
  // Where CONFIG is refused or renamed, nobody knows.
  const auto setting = [&](std::size_t reply) -> std::optional<std::string_view> {
    const Reply& its = replies.value()[reply];
    if (!its.is("*$$")) return std::nullopt;
    return its.at(1).text;
  };
  if (setting(1) == "no" && setting(2) == "") {
    util::log(util::Level::warning,
              address().shown +
                  ": this server saves nothing to disk, so what dlock once remembers "
                  "is lost when it restarts; set \"appendonly yes\" there");
  }
  const auto limit = setting(3);
  const auto policy = setting(4);
  // All other policies evict keys that expire, as marks do.
  if (limit && *limit != "0" && policy && *policy != "noeviction") {
    util::log(util::Level::warning,
              address().shown +
                  ": this server drops keys when it is out of memory, and with them "
                  "what dlock once remembers; set \"maxmemory-policy noeviction\" "
                  "there");
  }
  return {};
}

}  // namespace dlock::redis
