#include "cli/lock_service.hpp"

#include <unistd.h>

#include <algorithm>
#include <string>

#include "cli/layers.hpp"
#include "cli/refusal.hpp"
#include "cli/values.hpp"
#include "core/key.hpp"
#include "core/sharded_backend.hpp"
#include "engine/outcome.hpp"
#include "util/host.hpp"
#include "util/log.hpp"

namespace dlock::cli {

LockService::LockService(const Invocation& invocation, std::span<const BackendEntry> backends)
    : LockService(invocation, given_settings(invocation), backends) {}

LockService::LockService(const Invocation& invocation, Settings settings,
                         std::span<const BackendEntry> backends)
    : settings_(std::move(settings)), wanted_(invocation.operands) {
  set_log_from(settings_);
  const auto config = load_config(settings_, *invocation.command);
  selection_ = select_backend(settings_, config, backends);
  json_ = effective(settings_, flag("json")) != nullptr;
  if (const Setting* output = settings_.find("output")) columns_ = chosen_columns(*output);
  if (const Setting* age = settings_.find("older-than")) {
    older_than_ = to_duration(*age, flag("older-than"));
  }
}

std::string LockService::place(const std::string& location) const {
  if (selection_.by_default) return location + " (no backend is named)";
  return location + (selection_.profile.empty() ? "" : " (profile " + selection_.profile + ')');
}

bool LockService::is_default_directory() const {
  return traits().reach == Traits::Reach::host && selection_.target.url.path.empty();
}

Deadline LockService::patience() const {
  return after(Clock::now(), selection_.target.connect_timeout);
}

Result<std::unique_ptr<Backend>> LockService::open() const {
  return open_backend(*selection_.entry, selection_.target, patience(), Cancel());
}

Result<Listing> LockService::list(Backend& backend) const {
  auto found = backend.list_reachable(wanted_.common(), kNever);
  if (!found) return found;
  std::erase_if(found->locks, [&](const LockInfo& lock) { return !wanted_.has(lock.key); });
  if (!older_than_) return found;
  for (LockInfo& lock : found->locks) lock = with_older_holders(lock, *older_than_);
  std::erase_if(found->locks, [](const LockInfo& lock) { return lock.holders.empty(); });
  return found;
}

const std::string& key_operand(const Invocation& invocation) {
  const std::string& key = invocation.operands.front();
  if (auto ok = check_key(key); !ok) refuse_usage(ok.error().message);
  return key;
}

int LockService::report(const Error& error, int busy) const {
  util::log(util::Level::error, with_origin(error, selection_.target).message);
  return not_acquired(error, busy).exit_status;
}

int no(const std::string& why) {
  util::log(util::Level::error, why);
  return exit_status::kNo;
}

std::string this_process_in_words() {
  return util::user_name() + " on " + util::host_name() + " (pid " + std::to_string(getpid()) + ')';
}

LockInfo with_older_holders(const LockInfo& lock, Millis age) {
  LockInfo out = lock;
  std::erase_if(out.holders,
                [&](const auto& holder) { return !holder.held || *holder.held <= age; });
  return out;
}

}  // namespace dlock::cli
