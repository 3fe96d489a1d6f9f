#include "support/proxy/flow.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace dlock::test {
namespace {
// Time for the client to read a chunk, or the kernel would show it several at once.
constexpr std::chrono::microseconds kBetweenChunks{100};
}  // namespace

void Flow::push(std::string_view bytes, Deadline due) {
  if (!swallows_) pieces_.push_back({due, std::string(bytes)});
}

void Flow::push_end(Deadline due) {
  ended_ = true;
  if (!swallows_) pieces_.push_back({due, {}});
}

void Flow::swallow() {
  swallows_ = true;
  blocked_ = false;
  pieces_.clear();
}

bool Flow::flush(int fd, std::size_t chunk) {
  blocked_ = false;
  while (!pieces_.empty()) {
    Piece& piece = pieces_.front();
    const Deadline now = Clock::now();
    if (now < due()) return true;
    if (piece.bytes.empty()) {
      ::shutdown(fd, SHUT_WR);
      pieces_.pop_front();
      continue;
    }
    const std::size_t size = chunk == 0 ? piece.bytes.size() : std::min(chunk, piece.bytes.size());
    const ssize_t sent = ::send(fd, piece.bytes.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return blocked_ = errno == EAGAIN;
    piece.bytes.erase(0, static_cast<std::size_t>(sent));
    if (piece.bytes.empty()) pieces_.pop_front();
    if (chunk != 0) next_chunk_ = now + kBetweenChunks;
  }
  return true;
}

Deadline Flow::due() const {
  if (pieces_.empty() || blocked_) return kNever;
  return std::max(pieces_.front().due, next_chunk_);
}

}  // namespace dlock::test
