// The state of one acquire() while it tries and waits: acquire.cpp has the argument why it is
// right, acquire_waiting.cpp what comes between two tries.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "backends/mysql/connection.hpp"
#include "backends/mysql/lease.hpp"
#include "backends/mysql/place.hpp"
#include "backends/mysql/pulse.hpp"
#include "backends/mysql/schema.hpp"
#include "backends/mysql/state.hpp"
#include "backends/mysql/statements.hpp"
#include "core/backend.hpp"
#include "core/patience.hpp"
#include "util/text.hpp"

namespace dlock::mysql {

class Acquisition {
 public:
  Acquisition(std::shared_ptr<const Place> place, Method method, const Request& request,
              const Wait& wait)
      : place_(std::move(place)),
        method_(method),
        request_(request),
        wait_(wait),
        patience_(wait_, place_->connect_timeout, request.key),
        statements_(method, place_->prefix, request.key) {}

  Result<std::unique_ptr<Lease>> run();

 private:
  using Decision = State::Decision;

  // Of one try: the lease, or who is in the way.
  struct Tried {
    std::unique_ptr<Lease> lease;
    State state;
  };

  // acquire_waiting.cpp
  Result<bool> has_room();
  Result<void> wait_outside(const State& state);
  Result<void> sleep(const State& state, const Decision& decision);
  Result<std::optional<Millis>> watch_first(const State& state);
  Result<void> sleep_behind(const State& state, const Decision& decision);
  Result<void> listen_for(const std::string& mark, Millis time);
  Result<void> rest(Millis time);

  // acquire.cpp
  Result<std::unique_ptr<Lease>> take();
  Result<std::unique_ptr<Lease>> get();
  Result<Tried> attempt();
  std::string forget_unused(const std::string& mark);
  std::string beat();
  Result<void> look_at_tables();
  Result<void> queue();
  Result<void> sweep(const State& state);
  void tell(const State& state);
  Result<void> open(Deadline deadline, Cancel cancel);
  Result<void> connect();
  Result<void> remove_earlier(Deadline deadline, Cancel cancel);
  Result<void> leave();
  Error held_up(Error error) const;

  Result<Reply> ask(const std::string& text);
  State state_of(const Answer& rows) const { return State(parties_of(rows)); }
  std::unique_ptr<Lease> lease(const Outcome& out, Deadline asked);

  Deadline patience() const { return patience_.call_until(); }
  bool on_cluster() const { return connection_->on_cluster(); }
  bool is_connected() const { return connection_ && !connection_->broken(); }
  bool time_is_up() const { return wait_.until <= Clock::now(); }
  Error busy() const { return {Errc::busy, util::in_quotes(request_.key) + " is busy"}; }

  const std::shared_ptr<const Place> place_;
  const Method method_;
  Request request_;
  const Wait& wait_;
  Patience patience_;
  Statements statements_;
  Pulse pulse_;
  Deadline beat_{};  // when we last renewed our row in the queue

  std::unique_ptr<Connection> connection_;
  // Of a connection that was lost or given up: what it may have left, or may still come to leave;
  // "": nothing.
  std::string earlier_id_;
  std::unique_ptr<Connection> earlier_;  // given up, and not closed yet
  std::string held_up_by_;  // what its statement was waiting for, as end_session_of() says
  bool has_forgotten_unused_ = false;
  std::uint64_t own_ = 0;         // our row in the queue; 0: there is none
  unsigned vain_tries_ = 0;       // how often the lock looked free, and we did not get it
  std::uint64_t slow_first_ = 0;  // the first waiter, if it does not take a lock that is free
  Deadline slow_since_{};
  std::string told_;  // the holders that on_blocked was last called with
};

}  // namespace dlock::mysql
