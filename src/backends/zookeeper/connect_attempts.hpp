// The attempts of a session to connect: how long each may take, and what their failures mean. Pure:
// instants are passed in.
#pragma once

#include "util/clock.hpp"

namespace dlock::zookeeper {

class ConnectAttempts {
 public:
  /// `most`: no attempt takes longer.
  explicit ConnectAttempts(Millis most) : most_(most) {}

  /// How many servers there are.
  void set_servers(unsigned count) { servers_ = count; }

  /// A caller wants a connection: each server is to be tried once for it.
  void begin_round() { failed_in_round_ = 0; }
  bool all_failed() const { return failed_in_round_ >= servers_; }

  void begin(Deadline now);
  bool none_yet() const { return count_ == 0; }
  /// Until when the present attempt, and the answer to its first request, may take.
  Deadline give_up_at() const;

  /// `reset`: the server has closed the new connection by RST.
  void failed(bool reset);
  /// The attempt was given up at give_up_at().
  void was_silent();
  /// The server has accepted the session.
  void succeeded();
  /// A request was answered over the new connection: the next attempts begin anew.
  void answered();

  /// True once in each round in which no server has answered: they may have moved, as containers
  /// do, and their names are to be resolved again.
  bool wants_lookup();

  /// Most servers close new connections by RST, as they do at their maxClientCnxns.
  bool servers_are_full() const;

 private:
  const Millis most_;
  unsigned servers_ = 1;
  unsigned failed_in_round_ = 0;
  unsigned resets_ = 0;    // of the last failures, how many more were a reset than not
  unsigned count_ = 0;     // since a request was answered
  unsigned silences_ = 0;  // of those
  bool wants_lookup_ = false;
  Deadline began_{};
};

}  // namespace dlock::zookeeper
