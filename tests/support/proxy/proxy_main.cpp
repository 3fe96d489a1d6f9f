// dlock-proxy: a Proxy for shell scripts.
//
//     dlock-proxy HOST:PORT --control PATH      prints its port, and runs; commands come over the
//     unix
//                                               socket PATH, one a line, and are answered by a line
//     dlock-proxy --control PATH COMMAND...     gives it a command (see control.hpp), and prints
//     the
//                                               answer; status 1 if that is an error
//
// It ends with its parent, and when its stdin, if that is a pipe, is at its end.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cstdio>
#include <iostream>
#include <list>
#include <span>
#include <stdexcept>

#include "support/proxy/control.hpp"
#include "util/poll.hpp"

namespace dlock::test {
namespace {

struct Client {
  Fd fd;
  std::string text;  // of the line that has begun
};

sockaddr_un unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.copy(address.sun_path, sizeof address.sun_path - 1) != path.size()) {
    throw std::invalid_argument("too long for a socket: " + path);
  }
  return address;
}

Fd unix_socket() { return Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

// Reads into text; false at the end.
bool read_some(const Fd& fd, std::string& text) {
  std::array<char, 4'096> buffer;
  const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
  if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
  return got > 0;
}

void answer(Proxy& proxy, Client& client) {
  if (!read_some(client.fd, client.text)) return client.fd.reset();
  for (std::size_t end; (end = client.text.find('\n')) != std::string::npos;) {
    util::write_all(client.fd.get(), control(proxy, client.text.substr(0, end)) + '\n');
    client.text.erase(0, end + 1);
  }
}

bool stdin_is_pipe() {
  struct stat info {};
  return ::fstat(0, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
}

int serve(const std::string& server, const std::string& path) {
  const pid_t parent = ::getppid();
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) return 1;
  ::signal(SIGPIPE, SIG_IGN);

  const auto colon = server.rfind(':');
  if (colon == std::string::npos) throw std::invalid_argument("HOST:PORT is expected: " + server);
  Proxy proxy(server.substr(0, colon), std::stoi(server.substr(colon + 1)));

  const sockaddr_un address = unix_address(path);
  const Fd listener = unix_socket();
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener.get(), SOMAXCONN) != 0) {
    throw std::runtime_error("cannot listen at " + path);
  }
  std::cout << proxy.port() << std::endl;

  std::list<Client> clients;
  for (;;) {
    std::vector<pollfd> fds{{stdin_is_pipe() ? 0 : -1, POLLIN, 0}, {listener.get(), POLLIN, 0}};
    for (const Client& client : clients) fds.push_back({client.fd.get(), POLLIN, 0});
    util::poll(fds, kNever);
    std::string ignored;
    if (fds[0].revents != 0 && !read_some(Fd(::dup(0)), ignored)) return 0;
    std::size_t i = 2;
    for (Client& client : clients) {
      if (fds[i++].revents != 0) answer(proxy, client);
    }
    clients.remove_if([](const Client& client) { return !client.fd; });
    if (fds[1].revents != 0) {
      clients.push_back({Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)), {}});
    }
  }
}

int send(const std::string& path, std::span<char*> words) {
  const sockaddr_un address = unix_address(path);
  const Fd fd = unix_socket();
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("no proxy listens at " + path);
  }
  std::string line;
  for (const char* word : words) line += (line.empty() ? "" : " ") + std::string(word);
  util::write_all(fd.get(), line + '\n');
  std::string text;
  while (text.find('\n') == std::string::npos && read_some(fd, text)) {
  }
  std::cout << text;
  return text.empty() || text.starts_with("error") ? 1 : 0;
}

int run(std::span<char*> words) {
  if (words.size() == 4 && std::string(words[2]) == "--control") return serve(words[1], words[3]);
  if (words.size() >= 4 && std::string(words[1]) == "--control") {
    return send(words[2], words.subspan(3));
  }
  throw std::invalid_argument("usage: HOST:PORT --control PATH | --control PATH COMMAND...");
}

}  // namespace
}  // namespace dlock::test

int main(int argc, char** argv) {
  try {
    return dlock::test::run({argv, static_cast<std::size_t>(argc)});
  } catch (const std::exception& error) {
    std::cerr << "dlock-proxy: " << error.what() << '\n';
    return 1;
  }
}
