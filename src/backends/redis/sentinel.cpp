#include "backends/redis/sentinel.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "backends/redis/connection.hpp"
#include "backends/redis/quorum.hpp"
#include "util/text.hpp"

namespace dlock::redis {
namespace {

constexpr std::size_t kLongestHost = 255;

// What one sentinel says.
struct Master {
  HostPort host;
  std::int64_t epoch = 0;  // of the failover that made it the master
};

// The value behind `name` in a list of names and values.
std::string_view value_of(const Reply& fields, std::string_view name) {
  for (std::size_t i = 0; i + 1 < fields.items.size(); i += 2) {
    if (fields.items[i].text == name) return fields.items[i + 1].text;
  }
  return {};
}

Result<Master> ask(const Address& sentinel, const std::string& name, Deadline deadline,
                   Cancel cancel) {
  Connection connection(sentinel);
  // In the middle of a failover only the first command knows the new master already.
  const auto replies =
      connection.ask(std::vector<Command>{{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", name},
                                          {"SENTINEL", "MASTER", name}},
                     deadline, cancel);
  if (!replies) return replies.error();
  const Reply& where = replies.value()[0];
  if (where.says("unknown command")) {
    return Error{Errc::invalid, sentinel.shown + ": it is no sentinel, but a Redis server"};
  }
  if (where.is_error()) return server_error(sentinel, where.text);
  if (where.kind == Reply::Kind::nil) {
    return Error{Errc::invalid, sentinel.shown + ": it knows no master " + util::in_quotes(name)};
  }
  if (!where.is("*$$")) return connection.unexpected_reply();
  const Reply& more = replies.value()[1];
  if (more.is_error()) return server_error(sentinel, more.text);
  const std::string& host = where.at(0).text;
  const bool is_host = !host.empty() && host.size() <= kLongestHost && !util::has_control(host);
  const auto port = util::parse_int(where.at(1).text, 1, UINT16_MAX);
  const auto epoch = util::parse_int(value_of(more, "config-epoch"), 0, INT64_MAX);
  if (!is_host || !port || !epoch) return connection.unexpected_reply();
  return Master{{host, static_cast<std::uint16_t>(*port)}, *epoch};
}

// Of several errors, that of a sentinel that answers says most.
Error no_master(const std::vector<Error>& errors) {
  Error out{Errc::unreachable, ""};
  for (const Error& error : errors) {
    if (out.code == Errc::unreachable) out.code = error.code;
    out.message += (out.message.empty() ? "" : "; ") + error.message;
  }
  return out;
}

}  // namespace

std::string Sentinels::shown() const { return "redis " + util::printable(master); }

std::vector<const Address*> Sentinels::in_order() const {
  std::vector<const Address*> out;
  for (const Address& sentinel : each) out.push_back(&sentinel);
  std::rotate(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(first_.load()), out.end());
  return out;
}

void Sentinels::put_last(const Address& sentinel) {
  first_ = (static_cast<std::size_t>(&sentinel - each.data()) + 1) % each.size();
}

bool tells_of_switch(const Sentinels& sentinels, std::string_view message) {
  return message.starts_with(sentinels.master + ' ');
}

Result<HostPort> find_master(Sentinels& sentinels, Deadline deadline, Cancel cancel) {
  const auto each = sentinels.in_order();
  const auto count = static_cast<unsigned>(each.size());
  // One that hangs has more time only if no other is left.
  const Millis soon = std::max(kSentinelAnswers, remaining(deadline) / (2 * count));
  std::optional<Master> latest;
  unsigned answered = 0;
  std::vector<Error> errors;
  for (const Address* sentinel : each) {
    const bool is_last_hope = sentinel == each.back() && !latest;
    const Deadline until = is_last_hope ? deadline : std::min(deadline, after(Clock::now(), soon));
    const auto master = ask(*sentinel, sentinels.master, until, cancel);
    if (!master) {
      if (master.error().code == Errc::cancelled) return master.error();
      errors.push_back(master.error());
      sentinels.put_last(*sentinel);
      continue;
    }
    if (!latest || master.value().epoch > latest->epoch) latest = master.value();
    if (++answered == quorum(count)) break;
  }
  if (latest) return std::move(latest->host);
  return no_master(errors);
}

}  // namespace dlock::redis
