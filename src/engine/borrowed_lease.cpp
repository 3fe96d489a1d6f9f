#include "engine/borrowed_lease.hpp"

#include <unistd.h>

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
  explicit BorrowedLease(std::optional<std::uint64_t> fence) : fence_(fence) {}

  std::optional<std::uint64_t> fence() const override { return fence_; }
  Deadline valid_until() const override { return kNever; }
  Result<void> renew(Deadline, Cancel) override { return {}; }
  Result<void> release(Deadline, Cancel) override { return {}; }

 private:
  std::optional<std::uint64_t> fence_;
};

std::string executable(const std::string& pid) {
  std::string out(4096, '\0');
  const ssize_t length = readlink(("/proc/" + pid + "/exe").c_str(), out.data(), out.size());
  out.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return out;
}

// A -> B -> A: the variables name B's lock, but the holder of A is a dlock above us all the same.
bool is_dlock_above_us(const Owner& owner) {
  if (owner.host != util::host_name()) return false;
  const auto above = ancestors();
  const bool found = std::any_of(above.begin(), above.end(), [&](const Process& process) {
    return process.pid == static_cast<pid_t>(owner.pid);
  });
  const std::string theirs = found ? executable(std::to_string(owner.pid)) : std::string();
  return !theirs.empty() && theirs == executable("self");
}

std::string how(Mode mode, unsigned slots) {
  if (mode == Mode::slots) return "with --slots " + std::to_string(slots);
  return mode == Mode::shared ? "as --shared" : "exclusively";
}

}  // namespace

Result<Borrowed> borrow_lease(Backend& backend, const Request& request, Deadline deadline) {
  const char* token = std::getenv("DLOCK_TOKEN");
  if (token == nullptr || *token == '\0') return Borrowed{};
  const auto info = backend.inspect(request.key, deadline);
  if (!info) return info.error();
  for (const LockInfo::Holder& holder : info.value().holders) {
    if (holder.owner.id != token && !is_dlock_above_us(holder.owner)) continue;
    const LockInfo& lock = info.value();
    if (lock.mode != request.mode || lock.slots != request.slots) {
      return Error{Errc::conflict, "this command runs inside a job that holds " +
                                       util::quoted(request.key) + ' ' +
                                       how(lock.mode, lock.slots) + ", so asking for it " +
                                       how(request.mode, request.slots) + " would wait for ever"};
    }
    return Borrowed{std::make_unique<BorrowedLease>(holder.fence), holder.owner.id};
  }
  return Borrowed{};
}

}  // namespace dlock
