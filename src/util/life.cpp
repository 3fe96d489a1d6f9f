// The token is a socket that listens and never accepts.  A connection to it stays in its backlog,
// and the kernel resets it when the last copy of the token is closed, also if all processes that
// had one were killed.  No pid is compared, and there is nothing that another process can inherit
// by chance.  A name of another machine, boot or network namespace would be free here although the
// token is open there, so the mark says where it belongs.
#include "util/life.hpp"

#include <cerrno>

#include "util/boot.hpp"
#include "util/local_socket.hpp"
#include "util/random_id.hpp"

namespace dlock::util {
namespace {

constexpr int kBacklog = 128;
constexpr std::size_t kIdLength = 32;

// "" where the kernel does not say in which boot and network namespace this process is.
std::string place() {
  if (boot_id().front() == '-' || net_namespace() == 0) return "";
  return boot_id() + '/' + std::to_string(net_namespace()) + '/';
}

}  // namespace

LifeToken make_life_token() {
  const std::string here = place();
  if (here.empty()) return {};
  const std::string id = random_id();
  LifeToken token{listen_locally(id, kBacklog), here + id};
  if (!token.fd) token.mark.clear();
  return token;
}

LifeWatch watch_life(std::string_view mark) {
  const std::string here = place();
  if (here.empty() || !mark.starts_with(here)) return {};
  mark.remove_prefix(here.size());
  if (mark.size() != kIdLength) return {};
  Fd connection = connect_locally(mark, Deadline{});
  if (connection) return {Life::alive, std::move(connection)};
  // EAGAIN: others fill the backlog, so it is open.
  if (errno == EAGAIN) return {Life::alive, Fd()};
  return {errno == ECONNREFUSED ? Life::ended : Life::unknown, Fd()};
}

}  // namespace dlock::util
