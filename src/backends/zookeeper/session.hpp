// One session with the servers.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/zookeeper/call.hpp"
#include "backends/zookeeper/connect_attempts.hpp"
#include "backends/zookeeper/loss_clock.hpp"
#include "backends/zookeeper/place.hpp"
#include "core/cancel.hpp"
#include "core/result.hpp"
#include "util/fd.hpp"

namespace dlock::zookeeper {

/// Has no thread: things happen only while somebody waits in one of its functions, so a session
/// that nobody waits in ends on the servers when its timeout has passed.
class Session {
 public:
  /// Asks for a session that lives for `timeout` without a word from us; the servers may give less
  /// or more.  Nothing is sent yet.
  Session(std::shared_ptr<const Place> place, Millis timeout);
  /// Without a word to the servers, unless close() came before.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Connects, if there is no connection.  Errc::unreachable once each server was tried in vain.
  Result<void> open(Deadline deadline, Cancel cancel);

  /// The same, but it tries again for kFarewell while no server can be connected to: for a caller
  /// that gives up and would leave something behind.
  Result<void> open_in_farewell(Deadline deadline, Cancel cancel);

  /// Resolves the servers' names and makes handle(), if there is none.  Does not connect.  open()
  /// and persist() call this.
  Result<void> prepare(Deadline deadline, Cancel cancel);

  /// What the functions of call.hpp take; after open().
  zhandle_t* handle() const { return handle_.get(); }

  /// Waits until each call is done.  What came of it stands in the call: connections are made anew
  /// as long as there is time, and what was under way on one that was lost is in doubt.
  Result<void> wait(const std::vector<Call>& calls, Deadline deadline, Cancel cancel);

  /// Asks and waits, and again for as long as an answer is in doubt: for what may be done twice.
  template <class Ask>
  Result<std::invoke_result_t<Ask>> persist(Ask ask, Deadline deadline, Cancel cancel) {
    for (;;) {
      if (auto ok = prepare(deadline, cancel); !ok) return ok.error();
      const auto calls = ask();
      if (auto ok = wait({calls.begin(), calls.end()}, deadline, cancel); !ok) return ok.error();
      bool in_doubt = false;
      for (const Call& call : calls) in_doubt = in_doubt || call->in_doubt();
      if (!in_doubt) return calls;
      if (Clock::now() >= deadline) return silent();
    }
  }

  /// Waits for news of a node that is watched, or of the connection.  Ok also when there is none.
  Result<void> wait_for_news(Deadline deadline, Cancel cancel);
  /// Whether there was news of a node (of any) since the last call.
  bool take_news();

  /// Lets the library read what has come; does not wait.
  void look();

  bool connected() const;
  /// The servers have ended it: all its nodes are gone.
  bool expired() const;
  std::int64_t id() const;
  /// Of the present connection; -1: there is none.
  int fd() const { return has_socket() ? fd_ : -1; }
  /// As the servers granted it; 0 before open().
  Millis timeout() const { return timeout_; }
  LossClock& clock() { return clock_; }

  /// Closes the connection.  The next one is with another server, if there is one, and continues
  /// the session.
  void hang_up();

  /// Ends it on the servers, and with it its nodes, without waiting: nobody answers that.
  void close();
  /// Like close(), but waits until `deadline` for the servers to confirm the end: it connects again
  /// with the same session, and repeats the request until they refuse a session that has ended.
  /// Requests sent before are carried out before the end, or never.  If a server is silent until
  /// `deadline`, the request to end the session is still on its way.  False if nobody has confirmed
  /// it.
  bool end(Deadline deadline);

  /// Adds the present connection to an epoll set, in which a former one removes itself.
  void add_to(const Fd& epoll) const;

  /// What has gone wrong with the connection, when there was no answer in time.
  Error silent() const;
  /// What an answer that is no success means; `doing`: "create /dlock/job".
  Error refused(const Call& call, const std::string& doing) const;

 private:
  struct Close {
    void operator()(zhandle_t* handle) const { zookeeper_close(handle); }
  };
  static void on_event(zhandle_t*, int type, int state, const char* path, void* context);

  bool stopped() const;
  bool has_socket() const;
  Result<void> turn(Deadline until, Cancel cancel);
  struct Interest;
  Interest interest();
  void process(int events);
  template <class Ask>
  int observe(Ask ask, bool reset = false);
  void accepted();
  void failed(int code, int cause, bool was_connected);
  void look_up_again(Deadline until, Cancel cancel);
  Error give_up();

  const std::shared_ptr<const Place> place_;
  const Millis asked_timeout_;
  Millis timeout_{0};
  std::unique_ptr<zhandle_t, Close> handle_;
  std::optional<clientid_t> former_;  // the session of a handle that was closed
  std::string addresses_;             // of the servers, as the library has them
  ConnectAttempts attempts_;
  LossClock clock_;
  int fd_ = -1;           // the library's socket
  Deadline handshake_{};  // when the request for a session was sent, or a little earlier
  bool ended_ = false;    // the servers have ended the session
  bool news_ = false;
  std::string trouble_;  // of the connection
};

}  // namespace dlock::zookeeper
