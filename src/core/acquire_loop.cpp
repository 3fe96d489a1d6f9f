#include "core/acquire_loop.hpp"

#include "util/text.hpp"

namespace dlock {
namespace {

class AcquireLoop {
 public:
  AcquireLoop(AcquireSteps& steps, const Request& request, const Wait& wait, Patience& patience)
      : steps_(steps), request_(request), wait_(wait), patience_(patience) {}

  Result<std::unique_ptr<Lease>> run() {
    for (;;) {
      auto lease = attempt_and_wait();
      if (lease && *lease) return lease;
      if (lease) continue;
      Error why = lease.error();
      if (why.code == Errc::lost || why.code == Errc::unreachable) {
        steps_.recover(why);
        why.code = Errc::unreachable;
      }
      const auto again = patience_.pause(why);
      if (again) continue;
      const auto left = steps_.leave();
      // "Busy" promises that nothing is left.
      return again.error().code == Errc::busy && !left ? left.error() : again.error();
    }
  }

 private:
  // Null: the lock may be free now.
  Result<std::unique_ptr<Lease>> attempt_and_wait() {
    auto attempt = steps_.attempt();
    if (!attempt) return attempt.error();
    patience_.answered();
    patience_.recovered();
    if (attempt->lease) return std::move(attempt->lease);
    if (auto ok = tell(attempt->seen); !ok) return ok.error();
    const bool is_over = patience_.tries_once() || wait_.until <= Clock::now();
    auto woken = is_over ? Result<bool>(false) : steps_.wait(wait_.until);
    if (!woken) return woken.error();
    if (!*woken) return Error{Errc::busy, util::in_quotes(request_.key) + " is busy"};
    return nullptr;
  }

  Result<void> tell(const std::string& seen) {
    if (!wait_.on_blocked || seen.empty() || seen == told_ || (wait_.once && !told_.empty()))
      return {};
    auto info = steps_.describe();
    if (!info) return info.error();
    if (info->holders.empty()) return {};
    told_ = seen;
    wait_.on_blocked(*info);
    return {};
  }

  AcquireSteps& steps_;
  const Request& request_;
  const Wait& wait_;
  Patience& patience_;
  std::string told_;  // Attempt::seen when on_blocked was last called
};

}  // namespace

Result<std::unique_ptr<Lease>> acquire_loop(AcquireSteps& steps, const Request& request,
                                            const Wait& wait, Patience& patience) {
  return AcquireLoop(steps, request, wait, patience).run();
}

}  // namespace dlock
