#include "support/resp.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <stdexcept>

#include "util/fd.hpp"
#include "util/poll.hpp"

namespace dlock::test {
namespace {

class Connection {
 public:
  Connection(const std::string& path, Deadline deadline)
      : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)), path_(path), deadline_(deadline) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.copy(address.sun_path, sizeof address.sun_path - 1) != path.size()) fail("too long");
    if (::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      fail("cannot connect");
    }
  }

  std::string command(const std::vector<std::string>& words) {
    std::string text = '*' + std::to_string(words.size()) + "\r\n";
    for (const std::string& word : words) {
      text += '$' + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    }
    if (!util::write_all(fd_.get(), text)) fail("cannot write");
    return reply();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error("redis at " + path_ + ": " + what);
  }

  void read_more() {
    if (!util::wait_readable(fd_.get(), deadline_)) fail("no reply in time");
    std::array<char, 65'536> buffer;
    const ssize_t got = ::read(fd_.get(), buffer.data(), buffer.size());
    if (got <= 0) fail("connection closed");
    text_.append(buffer.data(), static_cast<std::size_t>(got));
  }

  std::string take(std::size_t size) {
    while (text_.size() < size + 2) read_more();
    std::string out = text_.substr(0, size);
    text_.erase(0, size + 2);  // and its \r\n
    return out;
  }

  std::string reply() {
    while (text_.find("\r\n") == std::string::npos) read_more();
    const std::string line = take(text_.find("\r\n"));
    const std::string rest = line.substr(1);
    if (line[0] == '+' || line[0] == '-' || line[0] == ':') return rest;
    if (line[0] != '$' && line[0] != '*') fail("cannot read the reply " + line);
    const long count = std::stol(rest);
    if (count < 0) return "(nil)";
    if (line[0] == '$') return take(static_cast<std::size_t>(count));
    std::string all;
    for (long i = 0; i < count; ++i) all += (i > 0 ? "\n" : "") + reply();
    return all;
  }

  Fd fd_;
  std::string path_;
  Deadline deadline_;
  std::string text_;
};

}  // namespace

std::string redis_command(const std::string& path, const std::string& password,
                          const std::vector<std::string>& words, Deadline deadline) {
  Connection connection(path, deadline);
  if (!password.empty()) connection.command({"AUTH", password});
  return connection.command(words);
}

}  // namespace dlock::test
