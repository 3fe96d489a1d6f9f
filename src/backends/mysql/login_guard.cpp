// A login with a question.  With caching_sha2_password and sha256_password the server may ask for
// the password itself.  Without TLS, the client libraries encrypt it with a key that they ask the
// same server for (MySQL's only with sha256_password).  And where TLS was asked for and the server
// says that it has none, MariaDB's (3.3.20) sends the password in plain text.  Either way somebody
// who answers in place of the server receives it.  So without TLS these methods may write one
// packet only.  The first one is a hash of the password and a number of the server's, or a
// question.
//
// A login where TLS is needed.  MariaDB's library goes on without it if the server greets without
// CLIENT_SSL and any certificate would do.  The first write of the first method sends the login:
// the user, and a hash of the password that can be guessed from offline.  So the first method must
// be one of ours, whatever the server greets with: kFirstLogin, which the library always has.  A
// server whose accounts have another method asks for that next, with TLS, which costs one round
// trip. MySQL's library needs none of this: it refuses such a server itself.
#include "backends/mysql/login_guard.hpp"

#ifdef LIBMARIADB
#include <mysql/plugin_auth.h>
#else
#include <client_plugin.h>
#endif

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <utility>

namespace dlock::mysql {
namespace {

// st_mysql_client_plugin_AUTHENTICATION of client_plugin.h, whose MariaDB version includes a header
// that Debian leaves out.
struct Login : st_mysql_client_plugin {
  static constexpr int kType = 2;
#ifdef LIBMARIADB
  static constexpr unsigned kInterface = 1;  // the high byte of the version
#else
  static constexpr unsigned kInterface = 2;
#endif

  int (*authenticate_user)(MYSQL_PLUGIN_VIO*, MYSQL*);
};

constexpr std::size_t kQuestions = 2;  // the first ones may be asked for the password itself
constexpr std::array<const char*, 3> kGuarded{"caching_sha2_password", "sha256_password",
                                              kFirstLogin};

struct Guarded {
  const Library* library = nullptr;
  std::array<decltype(Login::authenticate_user), kGuarded.size()> authenticate{};
};
Guarded guarded;

struct Attempt {
  bool needs_tls = false;
  Refused refused = Refused::nothing;
};
thread_local Attempt attempt;

// What the plugin has instead of its line to the server.
struct Guard : MYSQL_PLUGIN_VIO {
  MYSQL_PLUGIN_VIO* line;
  MYSQL* mysql;
  bool has_written = false;

  static Guard& of(MYSQL_PLUGIN_VIO* vio) { return *static_cast<Guard*>(vio); }
  static int read(MYSQL_PLUGIN_VIO* vio, unsigned char** packet) {
    return of(vio).line->read_packet(of(vio).line, packet);
  }
  template <class Size>  // int, and in later versions size_t
  static int write(MYSQL_PLUGIN_VIO* vio, const unsigned char* packet, Size size) {
    // TLS begins in the first write, if the server greets with this method.
    const bool is_first = !std::exchange(of(vio).has_written, true);
    if (!is_first && guarded.library->mysql_get_ssl_cipher(of(vio).mysql) == nullptr) {
      attempt.refused = Refused::plain_password;
      return 1;
    }
    return of(vio).line->write_packet(of(vio).line, packet, size);
  }
  static void tell(MYSQL_PLUGIN_VIO* vio, MYSQL_PLUGIN_VIO_INFO* info) {
    of(vio).line->info(of(vio).line, info);
  }

  Guard(MYSQL_PLUGIN_VIO* its_line, MYSQL* its_mysql)
      : MYSQL_PLUGIN_VIO{}, line(its_line), mysql(its_mysql) {
    read_packet = read;
    write_packet = write;
    info = tell;
  }
};

template <std::size_t Number>
int authenticate(MYSQL_PLUGIN_VIO* vio, MYSQL* mysql) {
  MYSQL_PLUGIN_VIO_INFO line{};
  vio->info(vio, &line);
  if (attempt.needs_tls && (mysql->server_capabilities & CLIENT_SSL) == 0) {
    attempt.refused = Refused::no_tls;
    // The library may take a strange greeting for a request to try another method.
    ::shutdown(line.socket, SHUT_RDWR);
    return CR_ERROR;
  }
  if (Number >= kQuestions || line.protocol == MYSQL_PLUGIN_VIO_INFO::MYSQL_VIO_SOCKET) {
    return guarded.authenticate[Number](vio, mysql);
  }
  Guard guard(vio, mysql);
  return guarded.authenticate[Number](&guard, mysql);
}

template <std::size_t Number>
void put(MYSQL* mysql) {
  auto* const plugin = static_cast<Login*>(
      guarded.library->mysql_client_find_plugin(mysql, kGuarded[Number], Login::kType));
  if (plugin == nullptr || plugin->interface_version >> 8U != Login::kInterface) return;
  guarded.authenticate[Number] = std::exchange(plugin->authenticate_user, authenticate<Number>);
}

}  // namespace

void guard_logins(const Library& library) {
  guarded.library = &library;
  MYSQL* const mysql = library.mysql_init(nullptr);
  if (mysql == nullptr) return;
  put<0>(mysql);
  put<1>(mysql);
  put<2>(mysql);
  library.mysql_close(mysql);
}

std::string guarded_logins() {
  std::string out;
  for (std::size_t i = 0; i < kGuarded.size(); ++i) {
    if (guarded.authenticate[i] != nullptr) out += std::string(",") + kGuarded[i];
  }
  return out;
}

void require_tls(bool required) { attempt = {.needs_tls = required}; }

Refused take_refused() { return std::exchange(attempt.refused, Refused::nothing); }

}  // namespace dlock::mysql
