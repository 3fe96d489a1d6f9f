// The client library reads the descriptions of all columns before it returns, and the server says
// how many there are.  MariaDB's library calls a function after each read (a hook for programs that
// show the traffic), in the thread that has asked.
#include "backends/mysql/answer_limit.hpp"

#include <sys/socket.h>

#include <utility>

#include "backends/mysql/library.hpp"

namespace dlock::mysql {
namespace {

thread_local std::size_t bytes_of_answer = 0;
thread_local std::function<void(int)> first_read;

#ifdef LIBMARIADB
void count(int is_written, MYSQL* mysql, const unsigned char*, std::size_t length) {
  const auto read = static_cast<ssize_t>(length);  // -1: an error
  if (is_written != 0 || read <= 0) return;
  if (const auto call = std::exchange(first_read, {})) call(static_cast<int>(mysql->net.fd));
  bytes_of_answer += length;
  if (answer_is_too_long()) cut_off(mysql);
}
#endif

}  // namespace

void limit_answers([[maybe_unused]] const Library& library) {
#ifdef LIBMARIADB
  library.ma_pvio_register_callback(1, count);
#endif
}

void begin_answer(std::function<void(int)> on_first_read) {
  bytes_of_answer = 0;
  first_read = std::move(on_first_read);
}

bool answer_is_too_long() { return bytes_of_answer > kMostBytes; }

// Without this, freeing a result would read the rest of it.  The server gets a reset when the
// socket is closed: otherwise it might wait for minutes until there is room for more.
void cut_off(MYSQL* mysql) {
  const auto socket = static_cast<int>(mysql->net.fd);
  const linger none{1, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  ::shutdown(socket, SHUT_RDWR);
}

}  // namespace dlock::mysql
