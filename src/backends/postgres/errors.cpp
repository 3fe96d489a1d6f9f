// SQLSTATEs: https://www.postgresql.org/docs/current/errcodes-appendix.html
#include "backends/postgres/errors.hpp"

#include <algorithm>
#include <array>

#include "backends/sql/servers.hpp"
#include "util/text.hpp"

namespace dlock::postgres {
namespace {

constexpr std::string_view kOtherSession = "22012";  // see set_up() in connection.cpp

constexpr const char* kNotOurs =
    "a table %pkeys, %plocks, %precords or %prows is there that this dlock did not make; ALTER or "
    "DROP it (dlock backends --schema postgres), or choose another --prefix";

// In what a row says, %u is the user, %d the database, and %p the prefix of the tables.
struct Meaning {
  std::string_view state;
  Errc errc;
  const char* says;
};

constexpr std::array kMeanings{
    // --- busy, ill or on its way out: again later
    Meaning{"25006", Errc::unreachable, "it does not take writes; is it a standby?"},
    Meaning{"25P03", Errc::unreachable, "it has ended a transaction that was idle for too long"},
    Meaning{"40001", Errc::unreachable, "another transaction was first"},
    Meaning{"40P01", Errc::unreachable, "it found a deadlock"},
    Meaning{"53100", Errc::unreachable, "its disk is full"},
    Meaning{"53200", Errc::unreachable, "it is out of memory"},
    Meaning{
        "53300", Errc::unreachable,
        "it has no connection left for user %u: its max_connections, or a CONNECTION LIMIT of the "
        "role or database"},
    Meaning{"55P03", Errc::unreachable, "it waited too long for a lock"},
    Meaning{"57014", Errc::unreachable, "somebody has cancelled the statement"},
    Meaning{"57P01", Errc::unreachable, "an administrator has ended the connection"},
    Meaning{"57P02", Errc::unreachable, "it has crashed and starts again"},
    Meaning{"57P03", Errc::unreachable, "it is starting up or shutting down"},
    Meaning{"57P05", Errc::unreachable, "it has ended a connection that was idle for too long"},
    Meaning{"58030", Errc::unreachable, "it cannot read or write a file"},
    // --- who we are, and what we may
    Meaning{"28000", Errc::denied,
            "the user %u may not log in to database %d from this host, or only over TLS "
            "(pg_hba.conf there)"},
    Meaning{"28P01", Errc::denied, "wrong password for user %u, or there is no such user"},
    Meaning{"42501", Errc::denied, "the user %u may not do that in the database %d"},
    // --- what waiting does not cure
    Meaning{"3D000", Errc::invalid, "there is no database %d"},
    Meaning{"3F000", Errc::invalid, "the database %d has no schema public"},
    Meaning{"22001", Errc::invalid, kNotOurs},
    Meaning{"22P02", Errc::invalid, kNotOurs},
    Meaning{"23502", Errc::invalid, kNotOurs},
    Meaning{"23514", Errc::invalid, kNotOurs},
    Meaning{"42703", Errc::invalid, kNotOurs},
    Meaning{"42804", Errc::invalid, kNotOurs},
    Meaning{"42809", Errc::invalid, kNotOurs},
    Meaning{"42883", Errc::invalid, kNotOurs},
    Meaning{"42P10", Errc::invalid, kNotOurs},
    Meaning{"22021", Errc::invalid,
            "the encoding of the database %d has not all characters of the key or the record"},
    Meaning{"42601", Errc::invalid, "it does not understand the statement"},
    Meaning{"42704", Errc::invalid, "the database %d has no language plpgsql, which dlock needs"},
    Meaning{"42P01", Errc::invalid, "a table is missing in the database %d"},
    Meaning{kOtherSession, Errc::unsupported,
            "a pooler is before it, which may give the session to others and with it the locks; "
            "connect to the server itself, or to a pooler with pool_mode=session by "
            "?pooler=session"},
};

bool is_state_char(char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); }

// "... failed: FATAL:  28P01: password authentication failed ...\nLOCATION: ..."
struct Refusal {
  std::string_view state;
  std::string_view text;
};
Refusal refusal_in(std::string_view text) {
  constexpr std::size_t kLength = 5;
  for (auto at = text.find(":  "); at != std::string_view::npos; at = text.find(":  ", at + 1)) {
    const std::string_view state = text.substr(at + 3, kLength);
    const std::string_view rest = text.substr(std::min(at + 3 + kLength, text.size()));
    if (state.size() == kLength && std::all_of(state.begin(), state.end(), is_state_char) &&
        rest.starts_with(": ")) {
      return {state,
              rest.substr(2, rest.find('\n') == std::string_view::npos ? std::string_view::npos
                                                                       : rest.find('\n') - 2)};
    }
  }
  return {};
}

// Of what libpq itself says: `connection to server at "db1" (10.0.0.7), port 5432 failed:
// Connection refused`, and in a second line a question.
std::string_view reason_in(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  constexpr std::string_view kFailed = " failed: ";
  const auto at = text.find(kFailed);
  return at == std::string_view::npos ? text : text.substr(at + kFailed.size());
}

std::string tls_hint(const Place& place) {
  if (place.sslmode.empty() || place.sslmode == "disable" || place.sslmode == "prefer") return "";
  return "; sslmode=" + place.sslmode + " in the URL asks for TLS";
}

}  // namespace

Error error_of(std::string_view state, std::string_view text, const std::string& server,
               const Place& place) {
  const auto* known = std::find_if(kMeanings.begin(), kMeanings.end(),
                                   [&](const Meaning& it) { return it.state == state; });
  if (known == kMeanings.end()) {
    const bool is_lasting = state.starts_with("42") || state.starts_with("0A");
    return {is_lasting ? Errc::invalid : Errc::unreachable,
            server + ": error " + util::printable(state) + " (" +
                sql::shown_text(text, place.password) + ')'};
  }
  // What the server says of the division is no help.
  const std::string said =
      state == kOtherSession ? "" : " (" + sql::shown_text(text, place.password) + ')';
  return {known->errc,
          server + ": " + sql::filled(known->says, place.user, place.database, place.prefix) + said,
          state == "53300"};
}

Error connect_error_of(std::string_view text, const std::string& server, const Place& place) {
  const Refusal refusal = refusal_in(text);
  if (!refusal.state.empty()) return error_of(refusal.state, refusal.text, server, place);
  std::string why = sql::shown_text(reason_in(text), place.password);
  if (why.empty()) why = "it ended the connection before it said anything";
  const bool is_tls = text.find("SSL") != std::string_view::npos ||
                      text.find("certificate") != std::string_view::npos;
  const bool is_setting = text.starts_with("definition of service");  // in our own files
  return {is_setting ? Errc::invalid : Errc::unreachable,
          server + ": " + util::uncapitalized(why) + (is_tls ? tls_hint(place) : "")};
}

sql::Trouble trouble_of(std::string_view state) {
  // 23505, 42710, 42P07: of a table that two make at once.  55P03: of the row that others lock.
  constexpr std::array<std::string_view, 6> kPassing{"23505", "40001", "40P01",
                                                     "42710", "42P07", "55P03"};
  if (state == "42P01") return sql::Trouble::no_table;
  return std::find(kPassing.begin(), kPassing.end(), state) != kPassing.end()
             ? sql::Trouble::passing
             : sql::Trouble::other;
}

// The server says so itself by closing it, but for a standby: the primary is another one.
bool ends_connection(std::string_view state) {
  return state == "25006" || state == "25P03" || state == kOtherSession ||
         state.starts_with("57P") || state.starts_with("08");
}

}  // namespace dlock::postgres
