#include "backends/mysql/client_options.hpp"

#include <fcntl.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

#include "backends/mysql/login_guard.hpp"
#include "backends/sql/servers.hpp"
#include "core/trusted_file.hpp"
#include "util/fd.hpp"
#include "util/text.hpp"

namespace dlock::mysql {
namespace {

// How a user may log in, but for what is guarded.  What a server may ask for otherwise is the
// password in plain text (mysql_clear_password) or as a question on the terminal (dialog).  MySQL's
// library does neither unless told to.
[[maybe_unused]] constexpr const char* kLogins = "client_ed25519,parsec,auth_gssapi_client";

bool is_readable(const std::string& path) {
  return Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)).get() >= 0;
}

Error unreadable(const std::string& what, const std::string& path) {
  return {Errc::invalid,
          "cannot read the " + what + ' ' + util::printable(path) + ": " + std::strerror(errno)};
}

Result<std::string> ca_of(const Place& place) {
  if (!place.ca.empty()) {
    if (is_readable(place.ca)) return place.ca;
    return unreadable("CA certificate", place.ca);
  }
  if (auto trusted = sql::trusted_cas(); !trusted.empty()) return trusted;
  return Error{Errc::invalid,
               "this machine has no list of CAs that it trusts; name the server's with ?ca=FILE"};
}

struct Client {
  const Library& library;
  MYSQL* mysql;

  template <class T>
  bool set(mysql_option name, const T& value) const {
    return library.mysql_options(mysql, name, &value) == 0;
  }
  void set_text(mysql_option name, const char* value) const {
    library.mysql_options(mysql, name, value);
  }
};

Result<void> set_tls(const Client& client, const Place& place) {
  const bool wanted = place.tls != Tls::off;
  const bool verify = place.tls == Tls::verify;
  if (verify) {
    const auto ca = ca_of(place);
    if (!ca) return ca.error();
    client.set_text(MYSQL_OPT_SSL_CA, ca.value().c_str());
  }
  if (!place.cert.empty()) {
    if (!is_readable(place.cert)) return unreadable("certificate", place.cert);
    const auto key = read_key(place.key);
    if (!key) return key.error();
    // The library would ask for it on the terminal.
    if (key.value().find("ENCRYPTED") != std::string::npos) {
      return Error{Errc::invalid, "the key " + util::printable(place.key) + " has a passphrase"};
    }
    client.set_text(MYSQL_OPT_SSL_CERT, place.cert.c_str());
    client.set_text(MYSQL_OPT_SSL_KEY, place.key.c_str());
  }
  bool ok = true;
  require_tls(needs_tls(place.tls));
#ifdef LIBMARIADB
  // It does not enforce it where the server has none: see login_guard.cpp.
  if (needs_tls(place.tls)) client.set_text(MYSQL_DEFAULT_AUTH, kFirstLogin);
  const auto enforce = static_cast<my_bool>(wanted);
  const auto check = static_cast<my_bool>(verify);
  ok = client.set(MYSQL_OPT_SSL_VERIFY_SERVER_CERT, check) &&
       client.set(MYSQL_OPT_SSL_ENFORCE, enforce);
#else
  const unsigned mode = verify                        ? SSL_MODE_VERIFY_IDENTITY
                        : place.tls == Tls::preferred ? SSL_MODE_PREFERRED
                        : wanted                      ? SSL_MODE_REQUIRED
                                                      : SSL_MODE_DISABLED;
  ok = client.set(MYSQL_OPT_SSL_MODE, mode);
#endif
  if (ok) return {};
  return Error{Errc::unsupported, "the client library has no TLS"};
}

// Whole seconds are all that the library knows: whoever waits counts better.
void set_timeouts(const Client& client, const Place& place) {
  using std::chrono::ceil;
  using std::chrono::seconds;
  const auto patience = static_cast<unsigned>(ceil<seconds>(place.connect_timeout).count());
  client.set(MYSQL_OPT_CONNECT_TIMEOUT, patience);
  client.set(MYSQL_OPT_WRITE_TIMEOUT, patience);
#ifdef LIBMARIADB
  client.set(MYSQL_OPT_READ_TIMEOUT, patience);  // until Worker lifts it
#endif
}

}  // namespace

// There is nothing here of my.cnf: the library reads it only when told to.
Result<void> set_client_options(const Library& library, MYSQL* mysql, const Place& place,
                                std::size_t most) {
  const Client client{library, mysql};
  set_timeouts(client, place);
  client.set(MYSQL_OPT_LOCAL_INFILE, unsigned{0});
  client.set(MYSQL_OPT_MAX_ALLOWED_PACKET, static_cast<unsigned long>(most));
  client.set_text(MYSQL_SET_CHARSET_NAME, "utf8mb4");
  // "localhost" would mean the library's own idea of a socket.
  client.set(MYSQL_OPT_PROTOCOL,
             unsigned{place.socket.empty() ? MYSQL_PROTOCOL_TCP : MYSQL_PROTOCOL_SOCKET});
#ifdef LIBMARIADB
#if MARIADB_PACKAGE_VERSION_ID >= 30300
  client.set_text(MARIADB_OPT_RESTRICTED_AUTH, (kLogins + guarded_logins()).c_str());
#endif
#endif
  return set_tls(client, place);
}

}  // namespace dlock::mysql
