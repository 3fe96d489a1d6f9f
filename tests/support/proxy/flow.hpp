// One direction of a connection through the proxy.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "util/clock.hpp"

namespace dlock::test {

/// What was read from one socket and is not yet written to the other.  Without limit.
class Flow {
 public:
  /// Takes bytes, or the end of the stream, to be written not before `due`.
  void push(std::string_view bytes, Deadline due);
  void push_end(Deadline due);

  /// From now on nothing comes out.  For good: no TCP connection goes on behind a gap.
  void swallow();
  bool swallows() const { return swallows_; }

  /// Writes what is due, `chunk` bytes at a time if that is not 0; false if `fd` does not take it
  /// any more.
  bool flush(int fd, std::size_t chunk);

  /// When flush() has something to do without being told by poll(2).
  Deadline due() const;
  /// Whether it has something to do as soon as the socket takes it.
  bool blocked() const { return blocked_; }
  /// The end of the stream was passed on, or swallowed.
  bool done() const { return ended_ && pieces_.empty(); }
  bool ended() const { return ended_; }

 private:
  struct Piece {
    Deadline due;
    std::string bytes;  // none: the end
  };

  std::deque<Piece> pieces_;
  Deadline next_chunk_{};
  bool blocked_ = false;
  bool ended_ = false;
  bool swallows_ = false;
};

}  // namespace dlock::test
