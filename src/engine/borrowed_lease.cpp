#include "engine/borrowed_lease.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "engine/process_tree.hpp"
#include "util/host.hpp"
#include "util/text.hpp"

namespace dlock {
namespace {

class BorrowedLease final : public Lease {
 public:
  explicit BorrowedLease(const LockInfo::Holder& holder)
      : owner_id_(holder.owner.id), fence_(holder.fence) {}

  const std::string& owner_id() const override { return owner_id_; }
  std::optional<std::uint64_t> fence() const override { return fence_; }
  Deadline valid_until() const override { return kNever; }
  Result<void> renew(Deadline, Cancel) override { return {}; }
  Result<void> release(Deadline, Cancel) override { return {}; }

 private:
  const std::string owner_id_;
  const std::optional<std::uint64_t> fence_;
};

// A -> B -> A: the variables name B's lock, but the holder of A is a dlock above us all the same.
// The name tells that its pid is not another machine's (host names are not always unique).  Its
// executable would not: it is hidden where the holder is not dumpable, and another after an
// upgrade.
bool is_dlock_above_us(const Owner& owner) {
  if (owner.host != util::host_name()) return false;
  const auto above = ancestors();
  const std::string name = above.empty() ? "" : above.front().name;  // of this run's front
  return std::any_of(above.begin(), above.end(), [&](const Process& process) {
    return process.pid == static_cast<pid_t>(owner.pid) && process.name == name;
  });
}

std::string how(Mode mode, unsigned slots) {
  if (mode == Mode::slots) return "with --slots " + std::to_string(slots);
  return mode == Mode::shared ? "as --shared" : "exclusively";
}

}  // namespace

Result<std::unique_ptr<Lease>> borrow_lease(Backend& backend, const Request& request,
                                            Deadline deadline) {
  const char* token = std::getenv("DLOCK_TOKEN");
  if (token == nullptr || *token == '\0') return std::unique_ptr<Lease>();
  const auto info = backend.inspect(request.key, deadline);
  if (!info) return info.error();
  for (const LockInfo::Holder& holder : info.value().holders) {
    if (holder.owner.id != token && !is_dlock_above_us(holder.owner)) continue;
    const LockInfo& lock = info.value();
    if (lock.mode != request.mode || lock.slots != request.slots) {
      return Error{Errc::conflict, "this command runs inside a job that holds " +
                                       util::in_quotes(request.key) + ' ' +
                                       how(lock.mode, lock.slots) + ", so asking for it " +
                                       how(request.mode, request.slots) + " would wait for ever"};
    }
    return std::unique_ptr<Lease>(std::make_unique<BorrowedLease>(holder));
  }
  return std::unique_ptr<Lease>();
}

}  // namespace dlock
