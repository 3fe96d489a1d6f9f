// What `dlock doctor` finds out about the servers of a database, as far as that is the same in all.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/sql/place.hpp"
#include "backends/sql/session.hpp"
#include "core/checks.hpp"
#include "util/host.hpp"

namespace dlock::sql {

/// What is known of one server.
struct ServerFacts {
  std::string server;
  Millis ttl{};
  std::optional<Error> error = {};
  bool has_primary = false;  // one of the servers takes writes
  util::Ends ends = {};
  RoundTrips round_trips = {};
  Millis ahead{0};
  Told told = {};                        // by the server
  std::vector<std::string> tables = {};  // those that are there
  std::string missing = {};              // the others
  bool has_locks = true;                 // none is missing that locks need
  std::optional<Error> unfit = {};
  std::string lacks = {};             // "may not DELETE from dlock_rows"
  Severity lacking = Severity::fail;  // note: locks can be tried
  bool may_create = false;

  /// Asks for the time of the server, with "SELECT " and `now_ms`, to measure it and the way.
  Result<void> measure(Session& session, const std::string& now_ms, Deadline deadline,
                       Cancel cancel);
  /// Keeps the answers, whose rows are names and values.
  void tell(const Reply& reply);
  void add_missing(const std::string& table, bool is_of_locks);

  long long number(const std::string& name) const;
};

/// `schema` and `grants` are the lines that create the tables and that grant the rights to them.
Seen seen_tables(const ServerFacts& facts, const std::string& schema, const std::string& grants);

/// The words of a database.
struct Words {
  std::string_view connect, connect_fix;  // of a server that does not answer
  std::string_view primaries;             // several servers take writes
};

/// `Facts` has, beside those of ServerFacts:
///   - Place, Method, kWords, checks();
///   - shared_ptr<const Place> place, of this host alone; Method method;
///   - ask_all(deadline, cancel): looks at the server;
///   - takes_writes(), identity(), the same for a server by each of its names;
///   - client(), grants(), demote(), lines for the operator;
///   - is_refused(): no lock is granted here;
///   - trace_of(table, key): the WHERE of the rows of a key;
///   - open(place, deadline): a session.
template <class Facts>
class SqlExamination final : public Examination {
 public:
  using Place = typename Facts::Place;
  using Method = typename Facts::Method;

  SqlExamination(Place place, Method method, Millis ttl)
      : place_(std::move(place)), method_(method), ttl_(ttl) {}

  Findings look(Deadline deadline, Cancel cancel) override {
    auto servers = look_at_each(place_.hosts, [&](const HostPort& host) {
      auto place = std::make_shared<Place>(place_);
      place->keep_only(host);
      Facts facts;
      facts.server = place_.shown_host(host);
      facts.place = std::move(place);
      facts.method = method_;
      facts.ttl = ttl_;
      if (auto ok = facts.ask_all(deadline, cancel); !ok) facts.error = ok.error();
      return facts;
    });
    std::map<std::string, const Facts*> primaries;  // each once, also if it has several names
    for (const Facts& facts : servers) {
      if (facts.error || !facts.takes_writes()) continue;
      primaries.emplace(facts.identity(), &facts);
      if (!primary_) primary_ = facts;
    }
    for (Facts& facts : servers) facts.has_primary = primary_.has_value();
    Findings out;
    check_each<Facts>(Facts::checks(), servers, Facts::kWords.connect, Facts::kWords.connect_fix,
                      primary_.has_value(), out);
    for (const auto& [identity, facts] : primaries) {
      if (primaries.size() == 1) break;
      out.push_back({Facts::kWords.primaries, Severity::fail, facts->server,
                     "one of " + std::to_string(primaries.size()) + " servers that take writes",
                     "Each of them grants the same lock, and two jobs run at once.",
                     facts->demote()});
    }
    return out;
  }
  bool may_try() const override {
    const bool may_write =
        primary_ && (primary_->lacks.empty() || primary_->lacking == Severity::note);
    return may_write && primary_->has_locks && !primary_->unfit && !primary_->is_refused();
  }
  bool may_try_marks() const override {
    return primary_->missing.empty() && primary_->lacks.empty();
  }
  std::string rights() const override { return primary_->grants(); }
  Result<void> remove_traces(std::string_view key, std::span<const std::string>,
                             Deadline deadline) override {
    const auto session = Facts::open(std::make_shared<const Place>(place_), deadline, Cancel());
    if (!session) return session.error();
    std::string text;
    for (const std::string& table : primary_->tables) {
      text += "DELETE FROM " + table + " WHERE " + primary_->trace_of(table, key) + "; ";
    }
    const Reply reply = session.value()->insist(text, deadline, Cancel());
    return reply.ok() ? Result<void>() : *reply.error;
  }

 private:
  const Place place_;
  const Method method_;
  const Millis ttl_;
  std::optional<Facts> primary_;
};

}  // namespace dlock::sql
