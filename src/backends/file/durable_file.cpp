// The file has two copies of the text, each with a sequence number and a checksum.  A write
// replaces the older one and makes it durable.  So if the power fails in the middle, the other copy
// still counts, and it is the one that was returned last.
//
// That needs the newer copy to be on the disk before the older one is touched.  A process that is
// killed between write and fdatasync leaves a newer copy in memory only; and if a disk reports an
// error, the kernel drops what it could not write, and the next fdatasync succeeds.  So each write
// is marked, in a byte behind the copies, from before it begins until it is durable.  A process
// that finds the mark waits for the lock and writes the newest copy once more.  The mark need not
// be durable: after a power failure, memory holds what the disk holds.  It is read after the
// copies: a writer sets it before it touches them.
//
// The file is not replaced by rename(2): in a sticky directory that several users share, nobody may
// replace the file of another, nor delete it.  There a text is deleted by one that is empty.
#include "backends/file/durable_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "backends/file/state_dir.hpp"
#include "core/records.hpp"
#include "util/exchange.hpp"
#include "util/host.hpp"
#include "util/jitter.hpp"
#include "util/poll.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

constexpr std::size_t kCopySize = 16 * 1024;
constexpr std::size_t kCopyHeadSize = 70;
static_assert(kCopyHeadSize + kLongestRecord < kCopySize);
constexpr std::size_t kUsualSize = 1'000;
constexpr off_t kMarkAt = 2 * kCopySize;
constexpr std::int64_t kLastSequence = INT64_MAX;  // dlock never comes so far
constexpr char kUnderWay = '1';
constexpr char kDone = '0';
// The lock is held for as long as a disk needs.
constexpr Millis kPause{20};

// FNV-1a, 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/): against a torn write, not malice.
std::uint64_t checksum(std::string_view text) {
  std::uint64_t hash = 14'695'981'039'346'656'037U;
  for (const char byte : text) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 1'099'511'628'211U;
  }
  return hash;
}

// "dlock 00000000000000000007 00000001732789000000 00012 9ae16a3b2f90404f\n" and the text.
std::string format_copy(std::uint64_t sequence, const DurableText& content) {
  std::array<char, kCopyHeadSize + 1> head{};
  const int size = std::snprintf(head.data(), head.size(), "dlock %020llu %019lld %05zu ",
                                 static_cast<unsigned long long>(sequence),
                                 static_cast<long long>(content.written), content.text.size());
  std::string out(head.data(), static_cast<std::size_t>(size));
  std::snprintf(head.data(), head.size(), "%016llx\n",
                static_cast<unsigned long long>(checksum(out + content.text)));
  return out + head.data() + content.text + '\n';
}

bool is_blank(std::string_view bytes) {
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

}  // namespace

DurableFile::~DurableFile() {
  if (is_locked_) unlock(*file_);
}

// False if there is no such file.  One that others may only read is opened for that.
Result<bool> DurableFile::open() {
  auto file = open_lock_file(place_, name_, Missing::leave);
  if (file) {
    file_ = std::move(*file);
    return file_.has_value();
  }
  Fd fd(::openat(place_.fd(), name_.c_str(),
                 O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat st {};
  if (!fd || ::fstat(fd.get(), &st) != 0) return file.error();
  if (auto ok = check_file(place_, name_, st); !ok) return ok.error();
  file_ = LockFile{.name = name_, .fd = std::move(fd)};
  return true;
}

Result<DurableFile::Copy> DurableFile::find_newest() const {
  std::string bytes(kMarkAt, '\0');
  const ssize_t got = ::pread(file_->fd.get(), bytes.data(), bytes.size(), 0);
  if (got < 0) return errno_error(path(), "cannot read", errno);
  Copy newest;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string_view copy = std::string_view(bytes).substr(i * kCopySize, kCopySize);
    const auto sequence = util::parse_int(copy.substr(6, 20), 1, kLastSequence);
    const auto written = util::parse_int(copy.substr(27, 19), 0, INT64_MAX);
    const auto size = util::parse_int(copy.substr(47, 5), 0, kLongestRecord);
    if (!sequence || !written || !size) continue;
    DurableText content{std::string(copy.substr(kCopyHeadSize, static_cast<std::size_t>(*size))),
                        *written};
    const auto number = static_cast<std::uint64_t>(*sequence);
    const std::string same = format_copy(number, content);
    if (copy.substr(0, same.size()) != same || number < newest.sequence) continue;
    newest = {number, std::move(content), i};
  }
  if (newest.sequence == 0 && !is_blank(bytes)) {
    return no_record(util::printable(path()));
  }
  return newest;
}

Result<std::optional<DurableText>> DurableFile::read(Deadline deadline) {
  using Text = std::optional<DurableText>;
  if (!is_locked_) {
    const auto there = open();
    if (!there) return there.error();
    if (!there.value()) return Text();
  }
  auto copy = find_newest();
  char state = kDone;
  if (::pread(file_->fd.get(), &state, 1, kMarkAt) < 0) {
    return errno_error(path(), "cannot read", errno);
  }
  if (state != kDone) {
    const bool was_locked = is_locked_;
    if (!was_locked) {
      const auto locked = lock(Missing::leave, deadline);
      if (!locked) return locked.error();
      if (!locked.value()) return Text();
      copy = find_newest();
    }
    auto settled = copy ? settle(*copy) : Result<void>(copy.error());
    if (!was_locked) {
      ::flock(file_->fd.get(), LOCK_UN);
      is_locked_ = false;
    }
    if (!settled) return settled.error();
  }
  if (!copy) return copy.error();
  if (is_locked_) newest_ = *copy;
  return copy->content.text.empty() ? Text() : Text(std::move(copy->content));
}

Result<bool> DurableFile::lock(Missing missing, Deadline deadline) {
  for (;;) {
    auto file = open_lock_file(place_, name_, missing);
    if (!file) return file.error();
    if (!*file) return false;
    const auto got = try_flock(**file, place_, LOCK_EX);
    if (!got) return got.error();
    const auto in_place = got.value() ? is_in_place(**file, place_) : got;
    if (!in_place) return Error{Errc::unreachable, in_place.error().message};
    if (in_place.value()) {
      file_ = std::move(*file);
      is_locked_ = true;
      return true;
    }
    if (Clock::now() >= deadline) {
      return Error{Errc::unreachable, util::printable(path()) +
                                          ": another process uses it and does not go on; is it "
                                          "stopped?"};
    }
    if (!got.value()) util::poll({}, after(Clock::now(), util::jitter(kPause)));
  }
}

Result<void> DurableFile::put(const Copy& copy) {
  const std::string bytes = format_copy(copy.sequence, copy.content);
  const auto at = static_cast<off_t>(copy.number * kCopySize);
  if (auto ok = write_at(*file_, place_, bytes, at); !ok) return ok;
  if (::fdatasync(file_->fd.get()) != 0) return errno_error(path(), "cannot make durable", errno);
  return {};
}

Result<void> DurableFile::mark(char state) {
  return write_at(*file_, place_, std::string_view(&state, 1), kMarkAt);
}

// After a write that was not finished.
Result<void> DurableFile::settle(const Copy& newest) {
  if (newest.sequence == 0) return {};
  if (auto ok = sync_with_parents(path().substr(0, path().rfind('/'))); !ok) return ok;
  if (auto ok = put(newest); !ok) return ok;
  return mark(kDone);
}

Result<void> DurableFile::write(std::string_view text) {
  const Deadline begun = Clock::now();
  if (!newest_) {
    if (auto ok = read(kNever); !ok) return ok.error();
  }
  const Copy before = *std::exchange(newest_, std::nullopt);
  if (before.sequence == kLastSequence) return no_record(util::printable(path()));
  if (auto ok = mark(kUnderWay); !ok) return ok;
  if (before.sequence == 0) {
    if (auto ok = sync_with_parents(path().substr(0, path().rfind('/'))); !ok) return ok;
  }
  const auto now = static_cast<std::int64_t>(util::utc_now_ms());
  const auto written = put({before.sequence + 1, {std::string(text), now}, 1 - before.number});
  if (util::exchanges_shown()) {
    util::log_exchange("file " + path(), "write", written ? "durable" : written.error().message,
                       begun);
  }
  return written ? mark(kDone) : written;
}

Result<void> DurableFile::try_to_write(const LockFile& file, const Place& place) {
  if (auto ok = write_at(file, place, std::string(kUsualSize, ' '), 0); !ok) {
    return ok;
  }
  if (auto ok = write_at(file, place, " ", kMarkAt); !ok) return ok;
  if (::fdatasync(file.fd.get()) == 0) return {};
  return errno_error(place.shown, "cannot make durable", errno);
}

Result<void> DurableFile::remove() {
  if (::unlinkat(place_.fd(), name_.c_str(), 0) != 0) return write("");
  // Not all file systems can.
  if (::fsync(place_.fd()) == 0 || errno == EINVAL) return {};
  return errno_error(path(), "cannot make durable", errno);
}

}  // namespace dlock::file
