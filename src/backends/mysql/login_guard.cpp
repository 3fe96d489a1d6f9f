// With caching_sha2_password and sha256_password the server may ask for the password itself.
// MariaDB's library (3.3.20) encrypts it with a key that it asks the same server for; and where TLS
// was asked for and the server says that it has none, it sends it in plain text.  Either way
// whoever answers, or listens in, has the password.  So these methods may only write one packet
// without TLS: the first is a hash of the password and of a number of the server's, or a question.
#include "backends/mysql/login_guard.hpp"

#ifdef LIBMARIADB
#include <mysql/plugin_auth.h>

#include <array>
#include <cstddef>
#include <utility>

namespace dlock::mysql {
namespace {

// st_mysql_client_plugin_AUTHENTICATION of mysql/client_plugin.h, which includes a header that
// Debian leaves out.
struct Login : st_mysql_client_plugin {
  static constexpr int kType = 2;
  static constexpr unsigned kInterface = 1;  // the high byte of the version

  int (*authenticate_user)(MYSQL_PLUGIN_VIO*, MYSQL*);
};

constexpr std::array<const char*, 2> kGuarded{"caching_sha2_password", "sha256_password"};

struct Guarded {
  const Library* library = nullptr;
  std::array<decltype(Login::authenticate_user), kGuarded.size()> authenticate{};
};
Guarded guarded;

thread_local bool has_refused = false;

// What the plugin has instead of its line to the server.
struct Guard : MYSQL_PLUGIN_VIO {
  MYSQL_PLUGIN_VIO* line;
  bool has_written = false;

  static Guard& of(MYSQL_PLUGIN_VIO* vio) { return *static_cast<Guard*>(vio); }
  static int read(MYSQL_PLUGIN_VIO* vio, unsigned char** packet) {
    return of(vio).line->read_packet(of(vio).line, packet);
  }
  template <class Size>  // int, and in later versions size_t
  static int write(MYSQL_PLUGIN_VIO* vio, const unsigned char* packet, Size size) {
    if (std::exchange(of(vio).has_written, true)) {
      has_refused = true;
      return 1;
    }
    return of(vio).line->write_packet(of(vio).line, packet, size);
  }
  static void tell(MYSQL_PLUGIN_VIO* vio, MYSQL_PLUGIN_VIO_INFO* info) {
    of(vio).line->info(of(vio).line, info);
  }

  explicit Guard(MYSQL_PLUGIN_VIO* its_line) : line(its_line) {
    read_packet = read;
    write_packet = write;
    info = tell;
  }
};

template <std::size_t Number>
int authenticate(MYSQL_PLUGIN_VIO* vio, MYSQL* mysql) {
  MYSQL_PLUGIN_VIO_INFO line{};
  vio->info(vio, &line);
  const bool is_safe = line.protocol == MYSQL_PLUGIN_VIO_INFO::MYSQL_VIO_SOCKET ||
                       guarded.library->mysql_get_ssl_cipher(mysql) != nullptr;
  if (is_safe) return guarded.authenticate[Number](vio, mysql);
  Guard guard(vio);
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
  library.mysql_close(mysql);
}

bool take_guarded() { return std::exchange(has_refused, false); }

}  // namespace dlock::mysql

#else

namespace dlock::mysql {

void guard_logins(const Library&) {}
bool take_guarded() { return false; }

}  // namespace dlock::mysql

#endif
