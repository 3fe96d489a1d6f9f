// Numbers: https://mariadb.com/kb/en/mariadb-error-codes/ and MySQL's errmsg list; below 1900 they
// mean the same to both.  2000 to 2999 and 5000 to 5999 are the client library's own.
#include "backends/mysql/errors.hpp"

#include <netdb.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "backends/sql/servers.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace dlock::mysql {
namespace {

using util::in_quotes;

constexpr unsigned kNoLogin = 1045;
constexpr unsigned kTlsFailed = 2026;
constexpr unsigned kLoginFailed = 2061;

constexpr const char* kNotOurs =
    "a table %pkeys, %plocks, %precords or %prows is there that this dlock did not make; ALTER or "
    "DROP it (dlock backends --schema mysql), or choose another --prefix";

// In what a row says, %u is the user, %d the database, and %p the prefix of the tables.
struct Meaning {
  unsigned code;
  Errc errc;
  const char* says;
};

constexpr std::array kMeanings{
    // --- busy, ill or on its way out: again later
    Meaning{3, Errc::unreachable, "it cannot write a file"},
    Meaning{1021, Errc::unreachable, "its disk is full"},
    Meaning{1026, Errc::unreachable, "it cannot write a file"},
    Meaning{1040, Errc::unreachable, "it has no connection left; max_connections is its limit"},
    Meaning{1041, Errc::unreachable, "it is out of memory"},
    Meaning{1047, Errc::unreachable, "this node of the cluster is not ready"},
    Meaning{1053, Errc::unreachable, "it is shutting down"},
    Meaning{1114, Errc::unreachable, "its disk or table space is full"},
    Meaning{1129, Errc::unreachable,
            "it has blocked this host after too many bad connections; "
            "an administrator can say FLUSH HOSTS there"},
    Meaning{1152, Errc::unreachable, "it has ended the connection"},
    Meaning{1153, Errc::unreachable, "the statement is larger than its max_allowed_packet"},
    Meaning{1158, Errc::unreachable, "it has lost the connection"},
    Meaning{1159, Errc::unreachable, "it has ended a connection that was too slow"},
    Meaning{1160, Errc::unreachable, "it has lost the connection"},
    Meaning{1161, Errc::unreachable, "it has ended a connection that was too slow"},
    Meaning{1203, Errc::unreachable,
            "the user %u has no connection left; max_user_connections is the limit"},
    Meaning{1205, Errc::unreachable, "it waited too long for a row that another transaction holds"},
    Meaning{1213, Errc::unreachable, "it found a deadlock between transactions"},
    Meaning{1226, Errc::unreachable, "the user %u has reached a limit of its account"},
    Meaning{1290, Errc::unsupported, "one of its options forbids that"},
    Meaning{1317, Errc::unreachable, "somebody has interrupted the statement"},
    Meaning{1792, Errc::unreachable, "it is read_only; is it a replica?"},
    Meaning{1836, Errc::unreachable, "it is read_only; is it a replica?"},
    Meaning{1927, Errc::unreachable, "somebody has killed the connection"},
    Meaning{1969, Errc::unreachable, "the statement took longer than it allows"},
    Meaning{3024, Errc::unreachable, "the statement took longer than it allows"},
    Meaning{3169, Errc::unreachable, "somebody has killed the connection"},
    Meaning{4031, Errc::unreachable, "it has ended a connection that was idle for too long"},
    // --- who we are, and what we may
    Meaning{1044, Errc::denied, "the user %u may not use the database %d"},
    Meaning{kNoLogin, Errc::denied,
            "wrong password for user %u, or the user may not connect from this host"},
    Meaning{1095, Errc::denied, "the user %u may not end a connection of another user"},
    Meaning{1130, Errc::denied, "this host may not connect"},
    Meaning{1142, Errc::denied, "the user %u may not do that in the database %d"},
    Meaning{1143, Errc::denied, "the user %u may not do that in the database %d"},
    Meaning{1227, Errc::denied, "the user %u lacks a privilege"},
    Meaning{1251, Errc::denied, "the user %u logs in by a method that this client does not have"},
    Meaning{1370, Errc::denied, "the user %u may not do that in the database %d"},
    Meaning{1524, Errc::denied, "the user %u logs in by a method that it does not have"},
    Meaning{1698, Errc::denied, "the user %u may not log in"},
    Meaning{1820, Errc::denied, "the user %u must set a new password first"},
    Meaning{1862, Errc::denied, "the password of the user %u has expired"},
    Meaning{3058, Errc::unreachable, "it found a deadlock between GET_LOCKs"},
    Meaning{3118, Errc::denied, "the account of the user %u is locked there"},
    Meaning{3159, Errc::denied, "it takes connections with TLS only; say ?tls=on or ?tls=verify"},
    Meaning{3955, Errc::denied, "the user %u is blocked after too many bad passwords"},
    Meaning{4151, Errc::denied, "the account of the user %u is locked there"},
    Meaning{2059, Errc::denied, "the user %u logs in by a method that this client does not have"},
    Meaning{kLoginFailed, Errc::denied, "the user %u may not log in, or only over TLS"},
    Meaning{5010, Errc::denied, "it asks for a login that is not safe; is it a MySQL or MariaDB?"},
    // --- what waiting does not cure
    Meaning{1049, Errc::invalid, "there is no database %d"},
    Meaning{1054, Errc::invalid, kNotOurs},
    Meaning{1064, Errc::invalid, "it does not understand the statement"},
    Meaning{1146, Errc::invalid, "a table is missing in the database %d"},
    Meaning{1286, Errc::invalid, "it has no InnoDB, which dlock needs"},
    Meaning{1364, Errc::invalid, kNotOurs},
    Meaning{1406, Errc::invalid, kNotOurs},
    Meaning{1193, Errc::invalid, "it is too old or has no InnoDB, which dlock needs"},
    Meaning{1665, Errc::unsupported,
            "its binary log takes statements only, which InnoDB does not write at the isolation "
            "level READ COMMITTED; SET GLOBAL binlog_format=MIXED there"},
    // --- the client library's own
    Meaning{2006, Errc::unreachable, "the connection was lost"},
    Meaning{2007, Errc::unreachable, "its answer makes no sense; is it a MySQL or MariaDB?"},
    Meaning{2013, Errc::unreachable, "the connection was lost"},
    Meaning{2014, Errc::unreachable, "its answers came out of order"},
    Meaning{2020, Errc::unreachable, "its answer is too large"},
    Meaning{kTlsFailed, Errc::unreachable, "TLS failed"},
    Meaning{2027, Errc::unreachable, "its answer makes no sense; is it a MySQL or MariaDB?"},
    Meaning{2055, Errc::unreachable, "the connection was lost"},
};

// Every one of its errors leaves it unclear what the server will say next.
bool is_of_library(unsigned code) {
  return (code >= 2'000 && code < 3'000) || (code >= 5'000 && code < 6'000);
}

// What the TLS of the URL may have to do with it.
std::string tls_hint(unsigned code, const Place& place) {
  if (code == kNoLogin && place.tls == Tls::off && place.socket.empty()) {
    return ", or only over TLS; say ?tls=on";
  }
  if (code == kLoginFailed && place.tls == Tls::off) return "; say ?tls=on";
  if (code != kTlsFailed) return "";
  if (place.tls == Tls::preferred) {
    return "; check the TLS of the server (?tls=off connects without encryption)";
  }
  if (place.tls != Tls::verify) return "";
  std::string out = ", or its certificate is not trusted or is for another name";
  out += place.ca.empty() ? "; name its CA with ?ca=FILE"
                          : "; is its CA in " + util::printable(place.ca) + '?';
  return out;
}

// Those that tell of the network by an errno.
bool is_of_network(unsigned code) {
  return (code >= 2'001 && code <= 2'006) || code == 2'013 || code == 2'055;
}

bool is_silence(int error) {
  return error == ETIMEDOUT || error == EINPROGRESS || error == EAGAIN || error == EALREADY;
}

std::string why_not_connected(unsigned code, int error, const Place& place) {
  if (is_silence(error)) {
    return "no answer within " + util::format_duration(place.connect_timeout) +
           "; is this a MySQL or MariaDB server?";
  }
  if (code == 2'005 || error < 0) {
    if (error == EAI_AGAIN) return "the name server does not answer";
    return "no such host";
  }
  if (!place.socket.empty() && error == ENOENT) return "no such socket";
  if (error == 0) return "it ended the connection before it said anything";
  return util::uncapitalized(std::strerror(error));
}

}  // namespace

Error error_of(unsigned code, std::string_view text, const std::string& server,
               const Place& place) {
  // "The server is running with the --read-only option ...": this number is for many options.
  if (code == 1290 && text.find("read-only") != std::string_view::npos) code = 1836;
  const auto* known = std::find_if(kMeanings.begin(), kMeanings.end(),
                                   [code](const Meaning& it) { return it.code == code; });
  if (known == kMeanings.end()) {
    return {Errc::unreachable, server + ": error " + std::to_string(code) + " (" +
                                   sql::shown_text(text, place.password) + ')'};
  }
  std::string message =
      server + ": " + sql::filled(known->says, place.user, place.database, place.prefix);
  const bool is_full = code == 1040 || code == 1203 || code == 1226;
  return {known->errc,
          message + tls_hint(code, place) + " (" + sql::shown_text(text, place.password) + ')',
          is_full};
}

// "... (111)", or "... system error: 110".
std::optional<int> system_error(unsigned code, std::string_view text) {
  if (!is_of_network(code)) return std::nullopt;
  while (text.ends_with(' ') || text.ends_with(')')) text.remove_suffix(1);
  const auto last = text.find_last_not_of("0123456789");
  if (last == std::string_view::npos || last + 1 == text.size()) return std::nullopt;
  const std::size_t from = text[last] == '-' ? last : last + 1;
  const auto number = util::parse_int(text.substr(from), -1'000, 1'000);
  if (!number) return std::nullopt;
  return static_cast<int>(*number);
}

// "... handshake. The authenticity of the following error cannot be verified: 1040 - Too many ...".
std::optional<Refusal> refusal_before_tls(std::string_view text) {
  constexpr std::string_view kBefore = "Received error packet before completion of TLS handshake";
  constexpr std::string_view kVerified = "verified: ";
  if (!text.starts_with(kBefore)) return std::nullopt;
  const auto at = text.find(kVerified);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + kVerified.size());
  const auto dash = text.find(" - ");
  if (dash == std::string_view::npos) return std::nullopt;
  const auto code = util::parse_int(text.substr(0, dash), 1, 65'535);
  if (!code) return std::nullopt;
  return Refusal{static_cast<unsigned>(*code), std::string(text.substr(dash + 3))};
}

Error connect_error_of(unsigned code, std::string_view text, std::optional<int> error,
                       const std::string& server, const Place& place) {
  if (!error && code != 2'005) return error_of(code, text, server, place);
  return {Errc::unreachable, server + ": " + why_not_connected(code, error.value_or(0), place)};
}

// 1317: on a cluster, a statement that collides with one of another server may end as one that was
//       interrupted.
// 3058: of MySQL, for 1213 where the locks are those of GET_LOCK().
// 3101: of MySQL, for 1213 where another server of a group was first.
sql::Trouble trouble_of(unsigned code, const Place& place) {
  constexpr std::array kPassing{1020U, 1205U, 1213U, 3058U, 3101U};
  if (code == 1146) return sql::Trouble::no_table;
  if (code == 1317 && *place.cluster == Place::Cluster::galera) return sql::Trouble::passing;
  return std::find(kPassing.begin(), kPassing.end(), code) != kPassing.end() ? sql::Trouble::passing
                                                                             : sql::Trouble::other;
}

// 1047: this server has lost the others of its cluster.  1290, 1792, 1836: it has become read-only.
// Another one may be well, or the name of this one may lead to another.
bool ends_connection(unsigned code) {
  constexpr std::array<unsigned, 13> kLast{1047, 1053, 1152, 1158, 1159, 1160, 1161,
                                           1290, 1792, 1836, 1927, 3169, 4031};
  return is_of_library(code) || std::find(kLast.begin(), kLast.end(), code) != kLast.end();
}

}  // namespace dlock::mysql
