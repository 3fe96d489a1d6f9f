// The kernel does not take a lock away: its holder must release it.  So force-release writes the
// reason behind the record in the holder's registration, which the holder watches.  The holder ends
// its command, and then releases the lock: unlike on a server, no other process is granted the lock
// while the command still runs.
#include "backends/file/force_release.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "backends/file/flock_wait.hpp"
#include "backends/file/name.hpp"
#include "backends/file/registrations.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

Error does_not_answer(std::string_view key, const Owner& owner) {
  return {Errc::unreachable,
          util::in_quotes(key) + " is still held: its holder, pid " + std::to_string(owner.pid) +
              ", was told to let go but does not answer: is it, or its \"lock supervisor\", "
              "stopped (state T in ps)?"};
}

State state_of(const LockFile& registration) {
  char sign = static_cast<char>(State::released);
  (void)!::pread(registration.fd.get(), &sign, 1, 0);
  return static_cast<State>(sign);
}

}  // namespace

Result<bool> force_release(const std::shared_ptr<const LockDir>& dir, std::string_view key,
                           std::string_view owner_id, const Reason& reason, Deadline deadline) {
  const auto place = place_of(dir, key, Missing::leave);
  if (!place) return place.error();
  if (!place.value()) return false;
  const auto registrations = read_registrations(*place.value(), Whom::all);
  if (!registrations) return registrations.error();
  const auto& holders = registrations.value().holders;
  const auto holder = std::find_if(holders.begin(), holders.end(), [&](const Registered& one) {
    return one.record.owner.id == owner_id;
  });
  if (holder == holders.end()) return false;

  // A registration is of one grant, so this cannot break a later one.
  const Fd folder = open_registrations_folder(*place.value());
  std::string name = holder->name;
  LockFile registration;
  registration.fd = open_registration(folder, name, O_RDWR | O_APPEND);
  if (!registration.fd && errno == ENOENT) return false;
  const std::string line = format_revocation(format_reason(reason));
  if (!registration.fd || ::write(registration.fd.get(), line.data(), line.size()) <
                              static_cast<ssize_t>(line.size())) {
    return errno_error(place.value()->shown, "cannot tell the holder of", errno);
  }
  registration.name = registrations_name(place.value()->leaf) + '/' + name;
  auto end = wait_flock(*place.value(), registration, LOCK_SH, getpid(), deadline, Cancel());
  if (!end) {
    return Error{end.error().code, util::in_quotes(key) + ": its holder was told to let go, but " +
                                       "whether it has cannot be seen: " + end.error().message};
  }
  if (*end != FlockWait::End::granted && state_of(registration) != State::broken) {
    return does_not_answer(key, holder->record.owner);
  }
  return true;
}

}  // namespace dlock::file
