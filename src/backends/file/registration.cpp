// A file is created, locked and then written.  A reader in between finds it unlocked, concludes
// that its process is dead, and removes it.  So the process that has created it checks whether it
// is still there when it is locked, and creates another one if not.
//
// The folder stays: to create and remove one takes longer than all else that a short run does on a
// disk.  A reader, as "dlock list" is, removes it if it is empty.
#include "backends/file/registration.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "backends/file/lock_file.hpp"
#include "backends/file/name.hpp"
#include "util/boot.hpp"
#include "util/clock.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

constexpr std::size_t kTimeDigits = 16;
// "dlock list" may remove the empty folder between two calls, but not so often.
constexpr int kTries = 1'000;

bool is_full(int error) { return error == ENOSPC || error == EDQUOT; }

// The names sort by the time of arrival.
std::string name_of_now(char kind) {
  std::array<char, 64> name{};
  const auto now = Clock::now().time_since_epoch().count();
  std::snprintf(name.data(), name.size(), "%c%0*llx-%d", kind, static_cast<int>(kTimeDigits),
                static_cast<unsigned long long>(now), static_cast<int>(getpid()));
  return name.data();
}

}  // namespace

Fd open_registrations_folder(const Place& place) {
  return Fd(::openat(place.fd(), registrations_name(place.leaf).c_str(),
                     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

void write_pid(int registration, pid_t pid) {
  std::array<char, kPidDigits> digits;
  auto rest = static_cast<unsigned>(pid);
  for (std::size_t i = digits.size(); i > 0; --i, rest /= 10) {
    digits[i - 1] = static_cast<char>('0' + rest % 10);
  }
  (void)!::pwrite(registration, digits.data(), digits.size(), kPidAt);
}

bool is_registration(std::string_view name) {
  if (name.size() < kTimeDigits + 3 || (name[0] != kHolder && name[0] != kWaiter)) return false;
  constexpr std::string_view kRest = "0123456789abcdef-";
  return name.find_first_not_of(kRest, 1) == std::string_view::npos;
}

Result<std::unique_ptr<Registration>> Registration::make(std::shared_ptr<const Place> place) {
  std::unique_ptr<Registration> made(new Registration(std::move(place)));
  const Place& where = *made->place_;
  const Sharing& sharing = where.dir->sharing();
  const std::string folder = registrations_name(where.leaf);
  const auto failed = [&](int error) -> Result<std::unique_ptr<Registration>> {
    if (is_full(error)) return std::move(made);
    return errno_error(file::path_of(where, folder), "cannot register in", error);
  };
  for (int tries = 0; tries < kTries; ++tries) {
    Fd folder_fd = open_registrations_folder(where);
    if (!folder_fd && errno == ENOENT) {
      if (create(where.fd(), folder, Kind::folder, sharing).done || errno == EEXIST) continue;
    }
    if (!folder_fd) return failed(errno);
    made->name_ = name_of_now(kHolder);
    Fd file = std::move(create(folder_fd.get(), made->name_, Kind::file, sharing).file);
    if (!file && errno != EEXIST && errno != ENOENT) return failed(errno);
    if (!file) continue;
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) continue;  // a reader is about to remove it
      const std::string path = file::path_of(where, folder) + '/' + made->name_;
      const Error error = flock_error(path, errno);
      ::unlinkat(folder_fd.get(), made->name_.c_str(), 0);
      return error;
    }
    struct stat st {};
    if (::fstat(file.get(), &st) != 0 || st.st_nlink == 0) continue;
    made->file_ = std::move(file);
    made->folder_ = std::move(folder_fd);
    made->write(State::trying, getpid(), "");
    return made;
  }
  return failed(EBUSY);
}

Registration::~Registration() {
  if (!held_) remove();
}

void Registration::write(State state, pid_t lock_pid, const std::string& line) {
  if (!file_) return;
  std::array<char, kRegistrationHeadSize + 1> head{};
  std::snprintf(head.data(), head.size(), "%c %0*d %0*llu\n", static_cast<char>(state),
                static_cast<int>(kPidDigits), static_cast<int>(lock_pid),
                static_cast<int>(kNamespaceDigits),
                static_cast<unsigned long long>(util::pid_namespace()));
  const std::string text = head.data() + line;
  if (::pwrite(file_.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size())) {
    size_ = static_cast<off_t>(text.size());
    lock_pid_ = lock_pid;
    state_ = state;
    return;
  }
  remove();  // readers must not find half of one
}

void Registration::rename_to(char kind) {
  if (!file_ || name_[0] == kind) return;
  std::string name = name_;
  name[0] = kind;
  if (::renameat(folder_.get(), name_.c_str(), folder_.get(), name.c_str()) == 0) {
    name_ = std::move(name);
  }
}

void Registration::mark_waiting(const Record& record) {
  if (name_.empty() || name_[0] == kWaiter) return;
  write(State::waits, getpid(), format_record(record));
  rename_to(kWaiter);
}

void Registration::locks_by(pid_t pid) {
  if (!file_ || lock_pid_ == pid) return;
  write_pid(file_.get(), pid);
  lock_pid_ = pid;
}

void Registration::mark_holding(const Record& record, pid_t lock_pid) {
  line_ = format_record(record);
  write(State::holds, lock_pid, line_);
  if (!file_) {
    util::log(util::Level::warning,
              "no space left for " +
                  util::printable(file::path_of(*place_, registrations_name(place_->leaf))) +
                  ": the lock works, but list and show cannot say who holds it, and force-release "
                  "cannot break it");
    return;
  }
  held_ = true;
  rename_to(kHolder);
}

void Registration::set(State state) {
  state_ = state;
  const char sign = static_cast<char>(state);
  if (file_) (void)!::pwrite(file_.get(), &sign, 1, 0);
}

Result<void> Registration::check() const {
  const auto folder = [&] { return file::path_of(*place_, registrations_name(place_->leaf)); };
  struct stat st {};
  const bool is_misnamed = held_ && name_[0] != kHolder;
  if (!file_ || is_misnamed) return errno_error(folder(), "cannot register in", ENOSPC);
  if (::fstat(file_.get(), &st) == 0 && st.st_nlink > 0) return {};
  return Error{Errc::lost, "a registration in " + util::printable(folder()) + " was deleted"};
}

std::optional<std::string> Registration::revoked() const {
  struct stat st {};
  if (!file_ || ::fstat(file_.get(), &st) != 0 || st.st_size <= size_) return std::nullopt;
  std::string text(kMostRead, '\0');
  const ssize_t got = ::pread(file_.get(), text.data(), text.size(), size_);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return parse_revocation(text);
}

bool Registration::restore() {
  struct stat st {};
  if (!held_ || !file_ || ::fstat(file_.get(), &st) != 0 || st.st_nlink > 0) return false;
  const auto made = make(place_);
  if (!made || !made.value()->file_) return false;
  Registration& fresh = *made.value();
  fresh.write(state_, lock_pid_, line_);
  // Keep the descriptor number, of which other processes have been told.
  if (!fresh.file_ || ::dup3(fresh.file_.get(), file_.get(), O_CLOEXEC) < 0) return false;
  folder_ = std::move(fresh.folder_);
  name_ = fresh.name_;
  fresh.held_ = true;  // so that its destructor does not remove the file
  return true;
}

void Registration::remove() {
  if (!file_) return;
  ::unlinkat(folder_.get(), name_.c_str(), 0);
  ::flock(file_.get(), LOCK_UN);
  file_.reset();
}

}  // namespace dlock::file
