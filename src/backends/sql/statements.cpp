#include "backends/sql/statements.hpp"

#include <algorithm>

#include "core/lock_record.hpp"
#include "core/mark.hpp"
#include "util/random_id.hpp"

namespace dlock::sql {
namespace {

constexpr Millis kReasonIsKept{60'000};
constexpr std::size_t kLongestReason = 4'000;
constexpr Millis kForName{1'000};
// The row may be granted to a client that is stopped.  It can renew its lease meanwhile.
constexpr Millis kRowSilence{10'000};

std::string micros(Millis time) { return std::to_string(time.count() * 1'000); }

// Rounded up: MySQL rounds the seconds of GET_LOCK to the nearest, and the servers end no session
// after half a second.
std::string seconds(Millis time) {
  constexpr std::int64_t kLongest = 2'000'000;  // in ms, a number of 31 bits
  return std::to_string(std::clamp<std::int64_t>((time.count() + 999) / 1'000, 0, kLongest));
}

// At least 1: no time at all means that there is no limit.
std::string millis(Millis time) {
  return std::to_string(std::clamp<std::int64_t>(time.count(), 1, INT32_MAX));
}

std::string quoted(std::string_view word) { return "'" + std::string(word) + '\''; }

std::string truth(bool is_true) { return is_true ? "TRUE" : "FALSE"; }

}  // namespace

Statements::Statements(const Database& database, std::string_view key)
    : database_(database),
      name_(key),
      key_(database.literal(key)),
      gate_(database.gate_name(key)) {}

std::string Statements::fill(std::string_view text, Values values) const {
  values.emplace_back("key", key_);
  values.emplace_back("gate", gate_);
  return database_.fill(text, values);
}

std::string Statements::look(std::string_view owner, Millis for_name, Gained has) const {
  const Values values{{"owner", database_.literal(owner)},
                      {"own", database_.own_name(owner)},
                      {"has_name", truth(has.has_name)},
                      {"has_gate", truth(has.has_gate)},
                      {"gate_seconds", "0"}};
  return (for_name > Millis{0} ? wait_for_name(owner, for_name) : "") +
         fill(database_.texts().look, values) + fill(database_.texts().state, values);
}

std::string Statements::wait_for_gate(std::string_view owner, Millis time) const {
  return fill(database_.texts().gate,
              {{"gate_seconds", seconds(time)}, {"gate_millis", millis(time)}}) +
         fill(database_.texts().state, {{"owner", database_.literal(owner)}});
}

std::string Statements::wait_for_name(std::string_view owner, Millis time) const {
  if (database_.is_without_session_locks()) return "";
  return fill(database_.texts().watch, {{"holder", database_.own_name(owner)},
                                        {"seconds", seconds(time)},
                                        {"millis", millis(time)}});
}

std::string Statements::watch(std::string_view owner, std::string_view holder, Millis time) const {
  return wait_for_name(holder, time) +
         fill(database_.texts().state, {{"owner", database_.literal(owner)}});
}

std::string Statements::peek() const { return fill(database_.texts().peek, {}); }

std::string Statements::create_key() const { return fill(database_.texts().create_key, {}); }

std::string Statements::literals(std::span<const std::string> texts) const {
  std::string list;
  for (const std::string& text : texts) {
    list += (list.empty() ? "" : ", ") + database_.literal(text);
  }
  return list;
}

Values Statements::of_request(const Request& request) const {
  return {{"owner", database_.literal(request.owner.id)},
          {"own", database_.own_name(request.owner.id)},
          {"mode", quoted(mode_name(request.mode))},
          {"slots", std::to_string(request.slots)},
          {"ttl", micros(request.ttl)},
          {"record", database_.literal(format_lock_record(request))}};
}

std::string Statements::join(const Request& request) const {
  return fill(database_.texts().join, of_request(request));
}

std::string Statements::take(const Request& request, const Look& look, const Decision& decision,
                             bool has_gate) const {
  std::string is_over;
  for (const LockRow* row : decision.over) {
    is_over += (is_over.empty() ? "" : " OR ") + ("owner = " + database_.literal(row->owner)) +
               " AND expires_at = " + database_.instant(row->expires_at);
  }
  Values values = of_request(request);
  values.emplace_back("version", *look.version);
  values.emplace_back("is_over", is_over.empty() ? "FALSE" : is_over);
  values.emplace_back("count_over", std::to_string(decision.over.size()));
  values.emplace_back("sole", request.mode == Mode::exclusive ? "1" : "NULL");
  values.emplace_back("slot", std::to_string(decision.slot));
  values.emplace_back("silence", seconds(request.ttl));
  values.emplace_back("has_gate", truth(has_gate));
  return fill(database_.texts().take, std::move(values));
}

std::string Statements::leave(std::span<const std::string> owners) const {
  return fill(database_.texts().leave, {{"owners", literals(owners)}});
}

std::string Statements::sweep_rows(std::span<const std::string> owners) const {
  return fill(database_.texts().sweep_rows, {{"owners", literals(owners)}});
}

std::string Statements::forget_keys(std::span<const std::string> keys) const {
  return fill(database_.texts().forget_keys, {{"names", literals(keys)}});
}

std::string Statements::sweep_key(std::string_view owner) const {
  return fill(database_.texts().sweep_key, {{"owner", database_.literal(owner)}});
}

std::string Statements::sweep() const {
  return fill(database_.texts().sweep,
              {{"random", database_.literal(random_beginning(util::random_id()))},
               {"from", database_.literal(random_beginning(name_))}});
}

std::string Statements::renew(std::string_view owner, Millis ttl, bool has_name,
                              const std::string& known, const std::string& record) const {
  const std::vector<std::string> records{known, record};
  return fill(database_.texts().renew, {{"owner", database_.literal(owner)},
                                        {"own", database_.own_name(owner)},
                                        {"row", database_.row_name(owner)},
                                        {"ttl", micros(ttl)},
                                        {"is_known", "record IN (" + literals(records) + ")"},
                                        {"record", database_.literal(record)},
                                        {"has_name", truth(has_name)}});
}

std::string Statements::release(std::string_view owner, bool has_name) const {
  return fill(database_.texts().release, {{"owner", database_.literal(owner)},
                                          {"own", database_.own_name(owner)},
                                          {"has_name", truth(has_name)}});
}

std::string Statements::complete(const Owner& owner, std::uint64_t fence,
                                 const Completion& completion, bool has_name) const {
  return fill(database_.texts().complete,
              {{"owner", database_.literal(owner.id)},
               {"own", database_.own_name(owner.id)},
               {"has_name", truth(has_name)},
               {"period", database_.literal(completion.period)},
               {"mark", database_.literal(format_mark(owner, fence, completion.remember))},
               {"id_in_mark", database_.literal("\"id\":\"" + owner.id + '"')}});
}

std::string Statements::take_name(std::string_view owner, Millis ttl) const {
  return wait_for_name(owner, kForName) +
         fill(database_.texts().take_name,
              {{"own", database_.own_name(owner)}, {"silence", seconds(ttl)}});
}

std::string Statements::break_grant(std::string_view owner, std::string_view why) const {
  return fill(database_.texts().break_grant,
              {{"owner", database_.literal(owner)},
               {"own", database_.own_name(owner)},
               {"row", database_.row_name(owner)},
               {"why", database_.literal(why.substr(0, kLongestReason))},
               {"kept", micros(kReasonIsKept)}});
}

std::string Statements::end_session(std::string_view owner, const std::string& session) const {
  return fill(database_.texts().end_session, {{"own", database_.own_name(owner)},
                                              {"row", database_.row_name(owner)},
                                              {"session", session}});
}

std::string Statements::lock_row(const Request& request, bool once) const {
  const bool is_exclusive = request.mode == Mode::exclusive;
  return fill(database_.texts().lock_row,
              {{"row", database_.row_name(request.owner.id)},
               {"silence", seconds(std::min(request.ttl, kRowSilence))},
               {"patience", fill(once ? "{row_patience_once}" : "{row_patience}", {})},
               {"strength", fill(is_exclusive ? "{for_update}" : "{for_share}", {})}});
}

std::string Statements::keep_row(Millis ttl) const {
  return fill("{keep_row}", {{"silence", seconds(ttl)}});
}

std::string_view random_beginning(std::string_view key) {
  const unsigned random = util::random_seed();
  if (random % 2 == 0) return "";
  std::size_t size = random / 2 % (key.size() + 1);
  const auto is_in_character = [&] {  // UTF-8
    return size < key.size() && (static_cast<unsigned char>(key[size]) & 0xC0U) == 0x80U;
  };
  while (is_in_character()) --size;
  return key.substr(0, size);
}

std::string list(const Database& database, std::string_view prefix) {
  return database.fill(database.texts().list, {{"length", std::to_string(prefix.size())},
                                               {"prefix", database.literal(prefix)}});
}

Gained gained(const Reply& reply) {
  if (reply.answers.size() < 3) return {};
  const Row& row = first_row(reply.answers[reply.answers.size() - 3]);
  return {is_true(row, 0), is_true(row, 1)};
}

Taken taken(const Reply& reply) {
  const Row& row = first_row(last_answer(reply));
  return {is_true(row, 0), is_true(row, 1), number(row, 2)};
}

Changed changed(const Reply& reply) {
  const Row& row = first_row(last_answer(reply));
  return {is_true(row, 1), is_true(row, 0), parse_role(text(row, 2)), text(row, 3),
          is_true(row, 4)};
}

Broken broken(const Reply& reply) {
  const Row& row = first_row(last_answer(reply));
  return {is_true(row, 1), is_true(row, 0), text(row, 2), text(row, 3)};
}

}  // namespace dlock::sql
