// The numbers of `dlock id`.  Each is one command, which the server runs without anything in
// between and answers when it is done.  If the answer is lost, so are the numbers.
//
// INCRBY and not a script, because Lua has no whole numbers above 2^53.
#include "backends/redis/node.hpp"
#include "util/text.hpp"

namespace dlock::redis {
Result<std::uint64_t> Node::take_numbers(std::string_view name, std::uint64_t count,
                                         Deadline deadline, Cancel cancel) {
  const std::string key = counter_of(prefix_, name);
  const auto reply =
      connection_.ask(Command{"INCRBY", key, std::to_string(count)}, deadline, cancel);
  if (!reply) return reply.error();
  const Reply& answer = reply.value();
  if (answer.says("increment or decrement would overflow")) return counter_is_full(name);
  const bool is_other = answer.says("WRONGTYPE") || answer.says("value is not an integer");
  // A negative number was not put there by us.
  const bool is_negative = answer.is(":") && answer.integer < static_cast<std::int64_t>(count);
  if (is_other || is_negative) {
    return not_a_counter(address().shown + ": key " + util::in_quotes(key));
  }
  if (answer.is_error()) return server_error(address(), answer.text);
  if (!answer.is(":")) return connection_.unexpected_reply();
  return static_cast<std::uint64_t>(answer.integer) - count + 1;
}

Result<IdWindow> Node::lease_window(Millis length, Deadline deadline, Cancel cancel) {
  const std::string key = workers_of(prefix_);
  // By its text: a second round trip would cost more than the text.
  const auto reply = connection_.ask(
      Command{"EVAL", std::string(kWindow.text), "1", key, std::to_string(length.count()),
              std::to_string(kIdEpochMs), std::to_string(kMostAhead.count()),
              std::to_string(kWorkers), std::to_string(kLastIdMs)},
      deadline, cancel);
  if (!reply) return reply.error();
  const Reply& answer = reply.value();
  const auto other = [&] {
    return not_a_counter(address().shown + ": key " + util::in_quotes(key));
  };
  if (answer.says("WRONGTYPE")) return other();
  if (answer.is_error()) return server_error(address(), answer.text);
  if (!answer.is("*$$$")) return connection_.unexpected_reply();
  const auto worker = util::parse_int(answer.at(0).text, 0, kWorkers - 1);
  const auto start = util::parse_int(answer.at(1).text, 0, INT64_MAX / 2);
  const auto now = util::parse_int(answer.at(2).text, 0, INT64_MAX);
  if (!worker || !start || !now) return other();
  const IdWindow window{static_cast<unsigned>(*worker), *start, *start + length.count()};
  if (auto ok = check_window(window, *now, address().shown); !ok) return ok.error();
  return window;
}

}  // namespace dlock::redis
