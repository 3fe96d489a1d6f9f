// Records are read by plain commands that write nothing, so that a user who may only read can look.
// The server's clock is asked in the same breath: it may be read a moment later than the record,
// which costs a mark as much of its time.
#include "backends/redis/redis_records.hpp"

#include <utility>
#include <vector>

#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::redis {
namespace {

constexpr std::size_t kReadAtOnce = 100;  // a reply has no more than as many records
constexpr std::size_t kLongest = kLongestRecord + 32;

// Of the server's TIME, in ms.
std::optional<std::int64_t> clock_in(const Reply& time) {
  if (!time.is("*$$")) return std::nullopt;
  const auto seconds = util::parse_int(time.at(0).text, 0, INT64_MAX / 2'000);
  const auto micros = util::parse_int(time.at(1).text, 0, 999'999);
  if (!seconds || !micros) return std::nullopt;
  return *seconds * 1'000 + *micros / 1'000;
}

// None for what dlock did not write.
std::optional<StoredRecord> record_in(const RecordName& name, const std::string& stored) {
  const auto space = stored.find(' ');
  if (space == std::string::npos || stored.size() > kLongest) return std::nullopt;
  const auto written = util::parse_int(stored.substr(0, space), 0, INT64_MAX);
  if (!written) return std::nullopt;
  return StoredRecord{
      .name = name, .text = stored.substr(space + 1), .version = stored, .written = *written};
}

class RedisRecords final : public Records {
 public:
  explicit RedisRecords(Node& node) : node_(node) {}

  std::string shown(const RecordName& name) const override {
    return node_.address().shown + ": key " + util::in_quotes(key_of(name));
  }
  Result<RecordLook> read(const RecordName& name, Deadline deadline) override;
  Result<RecordLook> list(std::string_view prefix, Deadline deadline) override;
  Result<bool> write(const RecordName& name, const std::string& version, const std::string& text,
                     Deadline deadline) override;
  Result<std::size_t> remove(std::span<const StoredRecord> seen, Deadline deadline) override;
  Result<void> prepare(std::string_view key, Deadline deadline) override;
  Result<RecordLook> sample(std::string_view, Deadline) override { return RecordLook{}; }

 private:
  struct Stored {
    std::vector<std::optional<std::string>> texts;  // none: of another type
    std::int64_t now = 0;
  };

  std::string key_of(const RecordName& name) const { return record_key(node_.prefix(), name); }
  Result<std::vector<Reply>> ask(const std::vector<Command>& commands, Deadline deadline) {
    return node_.ask(commands, node_.patience(deadline), Cancel());
  }
  Result<Stored> read(std::span<const RecordName> names, Deadline deadline);
  // How many of them were as they were seen.
  Result<std::size_t> put(std::span<const StoredRecord> seen, const std::string& text,
                          Deadline deadline);
  void warn_of_loss(const std::vector<Reply>& settings) const;

  Node& node_;
};

Result<RedisRecords::Stored> RedisRecords::read(std::span<const RecordName> names,
                                                Deadline deadline) {
  std::vector<Command> commands;
  for (const RecordName& name : names) {
    commands.push_back({"GETRANGE", key_of(name), "0", std::to_string(kLongest)});
  }
  commands.push_back({"TIME"});
  const auto replies = ask(commands, deadline);
  if (!replies) return replies.error();
  const auto now = clock_in(replies.value().back());
  Stored out{.texts = {}, .now = now.value_or(0)};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Reply& reply = replies.value()[i];
    const bool is_another_type = reply.says("WRONGTYPE");
    if (reply.is_error() && !is_another_type) return server_error(node_.address(), reply.text);
    if (!reply.is_error() && !reply.is("$")) return node_.unexpected_reply();
    out.texts.push_back(is_another_type ? std::nullopt : std::optional(reply.text));
  }
  const Reply& time = replies.value().back();
  if (time.is_error()) return server_error(node_.address(), time.text);
  if (!now) return node_.unexpected_reply();
  return out;
}

Result<RecordLook> RedisRecords::read(const RecordName& name, Deadline deadline) {
  const auto stored = read({&name, 1}, deadline);
  if (!stored) return stored.error();
  RecordLook out{.records = {}, .now = stored.value().now};
  const auto& text = stored.value().texts.front();
  if (text && text->empty()) return out;
  auto record = text ? record_in(name, *text) : std::nullopt;
  if (!record) return no_record(shown(name));
  out.records.push_back(std::move(*record));
  return out;
}

Result<RecordLook> RedisRecords::list(std::string_view prefix, Deadline deadline) {
  const auto found = node_.scan({"{*}:done:*"}, deadline, Cancel());
  if (!found) return found.error();
  std::vector<RecordName> names;
  for (const std::string& key : found.value()[0]) {
    auto name = mark_of_key(key, node_.prefix());
    if (name && name->key.starts_with(prefix)) names.push_back(std::move(*name));
  }
  RecordLook out;
  for (std::span<const RecordName> rest = names; !rest.empty();) {
    const auto some = rest.first(std::min(kReadAtOnce, rest.size()));
    const auto stored = read(some, deadline);
    if (!stored) return stored.error();
    out.now = stored.value().now;
    for (std::size_t i = 0; i < some.size(); ++i) {
      const auto& text = stored.value().texts[i];
      auto record = text ? record_in(some[i], *text) : std::nullopt;
      if (record) out.records.push_back(std::move(*record));
    }
    rest = rest.subspan(some.size());
  }
  return out;
}

// By its text: a second round trip would cost more than the text.
Result<std::size_t> RedisRecords::put(std::span<const StoredRecord> seen, const std::string& text,
                                      Deadline deadline) {
  std::vector<Command> commands;
  for (const StoredRecord& record : seen) {
    commands.push_back(
        {"EVAL", std::string(kPut.text), "1", key_of(record.name), record.version, text});
  }
  const auto replies = ask(commands, deadline);
  if (!replies) return replies.error();
  std::size_t count = 0;
  for (const Reply& reply : replies.value()) {
    if (reply.says("WRONGTYPE")) continue;
    if (reply.is_error()) return server_error(node_.address(), reply.text);
    if (!reply.is(":")) return node_.unexpected_reply();
    if (reply.integer == 1) ++count;
  }
  return count;
}

Result<bool> RedisRecords::write(const RecordName& name, const std::string& version,
                                 const std::string& text, Deadline deadline) {
  const StoredRecord seen{.name = name, .text = {}, .version = version};
  const auto written = put({&seen, 1}, text, deadline);
  if (!written) return written.error();
  if (written.value() == 0) return false;
  if (auto ok = node_.replicated(node_.patience(deadline), Cancel()); !ok) return ok.error();
  return true;
}

Result<std::size_t> RedisRecords::remove(std::span<const StoredRecord> seen, Deadline deadline) {
  return put(seen, "", deadline);
}

// To set what must not be there and must be there can never be done, and is refused by name: but
// first the server looks whether this user may write that key.
Result<void> RedisRecords::prepare(std::string_view key, Deadline deadline) {
  const std::string mark = key_of({RecordKind::mark, std::string(key), ""});
  const std::vector<Command> commands{{"SET", mark, "", "NX", "XX"},
                                      {"CONFIG", "GET", "appendonly"},
                                      {"CONFIG", "GET", "save"},
                                      {"CONFIG", "GET", "maxmemory"},
                                      {"CONFIG", "GET", "maxmemory-policy"}};
  const auto replies = ask(commands, deadline);
  if (!replies) return replies.error();
  const Reply& probe = replies.value()[0];
  if (probe.is_error()) {
    auto error = server_error(node_.address(), probe.text);
    if (error.code == Errc::denied) return error;
  }
  warn_of_loss(replies.value());
  return {};
}

// `settings`: the replies to prepare().  Where CONFIG is refused or renamed, nobody knows.
void RedisRecords::warn_of_loss(const std::vector<Reply>& settings) const {
  const auto setting = [&](std::size_t reply) -> std::optional<std::string_view> {
    const Reply& its = settings[reply];
    if (!its.is("*$$")) return std::nullopt;
    return its.at(1).text;
  };
  const std::string& server = node_.address().shown;
  if (setting(1) == "no" && setting(2) == "") {
    util::log(util::Level::warning,
              server +
                  ": this server saves nothing to disk, so what dlock once remembers "
                  "is lost when it restarts; set \"appendonly yes\" there");
  }
  const auto limit = setting(3);
  const auto policy = setting(4);
  // All other policies evict keys that expire, as marks do.
  if (limit && *limit != "0" && policy && *policy != "noeviction") {
    util::log(util::Level::warning,
              server +
                  ": this server drops keys when it is out of memory, and with them "
                  "what dlock once remembers; set \"maxmemory-policy noeviction\" "
                  "there");
  }
}

}  // namespace

std::unique_ptr<Records> make_records(Node& node) { return std::make_unique<RedisRecords>(node); }

}  // namespace dlock::redis
