// The file has two copies of the text, each with a sequence number and a checksum.  A write
// replaces the older one and makes it durable.  So if the power fails in the middle, the other copy
// still counts, and it is the one that was returned last.
//
// That needs the newer copy to be on the disk before the older one is touched.  A process that is
// killed between write and fdatasync leaves a newer copy in memory only; and if a disk reports an
// error, the kernel drops what it could not write, and the next fdatasync succeeds.  So each write
// is marked, in the latch, from before it begins until it is durable.  Whoever finds the mark
// writes the newest copy once more.  The mark need not be durable: after a power failure, memory
// holds what the disk holds.
//
// The file is not replaced by rename(2): in a sticky directory that several users share, nobody may
// replace the file of another.
#include "backends/file/durable_file.hpp"

#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "backends/file/mode_file.hpp"
#include "backends/file/state_dir.hpp"
#include "core/numbers.hpp"
#include "core/patience.hpp"
#include "util/exchange.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

// The text of all workers has 14 KiB.
constexpr std::size_t kCopySize = 16 * 1024;
constexpr std::size_t kHeadSize = 50;
constexpr char kUnderWay = '1';
constexpr char kDone = '0';

// FNV-1a, 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/): against a torn write, not malice.
std::uint64_t checksum(std::uint64_t sequence, std::string_view text) {
  std::uint64_t hash = 14'695'981'039'346'656'037U ^ sequence;
  for (const char byte : text) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 1'099'511'628'211U;
  }
  return hash;
}

// "dlock 00000000000000000007 00012 9ae16a3b2f90404f\n" and the text.
std::string format_copy(std::uint64_t sequence, std::string_view text) {
  std::array<char, kHeadSize + 1> head{};
  std::snprintf(head.data(), head.size(), "dlock %020llu %05zu %016llx\n",
                static_cast<unsigned long long>(sequence), text.size(),
                static_cast<unsigned long long>(checksum(sequence, text)));
  return head.data() + std::string(text) + '\n';
}

struct Copy {
  std::uint64_t sequence = 0;
  std::string text;
};

std::optional<Copy> parse_copy(std::string_view bytes) {
  if (bytes.size() < kHeadSize) return std::nullopt;
  const auto sequence = util::parse_int(bytes.substr(6, 20), 1, INT64_MAX);
  const auto size = util::parse_int(bytes.substr(27, 5), 0, kCopySize);
  if (!sequence || !size) return std::nullopt;
  Copy out{static_cast<std::uint64_t>(*sequence),
           std::string(bytes.substr(kHeadSize, static_cast<std::size_t>(*size)))};
  const std::string same = format_copy(out.sequence, out.text);
  if (bytes.substr(0, same.size()) != same) return std::nullopt;
  return out;
}

bool is_blank(std::string_view bytes) {
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

// Against a process that was stopped in the middle, and whose latch somebody has removed since: it
// has this one, too, and may go on at any moment.
Result<void> lock_file(const LockFile& file, const Place& place, Deadline deadline) {
  while (::flock(file.fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    const int error = errno;
    if (error != EWOULDBLOCK) return flock_error(place.shown, error);
    if (pause_briefly(deadline, Cancel())) continue;
    return Error{Errc::unreachable, util::printable(place.shown) +
                                        ": another process uses it and does not go on; is it "
                                        "stopped?"};
  }
  return {};
}

}  // namespace

Result<DurableFile> DurableFile::open(Place place, Deadline deadline) {
  Request whose;
  whose.owner.pid = getpid();
  auto latch = take_latch(place, whose, Wait{.until = deadline});
  if (!latch) return latch.error();
  auto file = open_lock_file(place, place.leaf);
  if (!file) return file.error();
  if (auto ok = lock_file(*file, place, deadline); !ok) return ok.error();
  return DurableFile(std::move(place), std::move(*latch), std::move(*file));
}

Result<std::optional<std::string>> DurableFile::read() {
  std::string bytes(2 * kCopySize, '\0');
  const ssize_t got = ::pread(file_.fd.get(), bytes.data(), bytes.size(), 0);
  if (got < 0) return errno_error(path(), "cannot read", errno);
  std::optional<Copy> newest;
  for (std::size_t i = 0; i < 2; ++i) {
    auto copy = parse_copy(std::string_view(bytes).substr(i * kCopySize, kCopySize));
    if (!copy || copy->sequence < sequence_) continue;
    newest_ = i;
    sequence_ = copy->sequence;
    newest = std::move(copy);
  }
  if (newest) {
    bytes_ = format_copy(sequence_, newest->text);
    return std::optional(std::move(newest->text));
  }
  if (is_blank(bytes)) return std::optional<std::string>();
  return not_a_counter(util::printable(path()));
}

Result<void> DurableFile::put(std::size_t copy, const std::string& bytes) {
  if (auto ok = write_at(file_, place_, bytes, static_cast<off_t>(copy * kCopySize)); !ok) {
    return ok;
  }
  if (::fdatasync(file_.fd.get()) != 0) {
    return errno_error(path(), "cannot make durable", errno);
  }
  return {};
}

Result<void> DurableFile::mark(char state) {
  return write_at(latch_, place_, std::string_view(&state, 1), 0);
}

Result<void> DurableFile::write(std::string_view text) {
  const Deadline begun = Clock::now();
  char state = kUnderWay;  // also in a latch that is new: that before it was removed
  if (::pread(latch_.fd.get(), &state, 1, 0) < 0) return errno_error(path(), "cannot read", errno);
  if (auto ok = mark(kUnderWay); !ok) return ok;
  if (sequence_ > 0 && state != kDone) {
    if (auto ok = put(newest_, bytes_); !ok) return ok;
  }
  if (sequence_ == 0) {
    warn_of_loss(*place_.dir, "its counters begin again");
    if (auto ok = sync_with_parents(path().substr(0, path().rfind('/'))); !ok) return ok;
  }
  std::string bytes = format_copy(sequence_ + 1, text);
  auto written = put(1 - newest_, bytes);
  if (util::exchanges_shown()) {
    util::log_exchange("file " + path(), "write", written ? "durable" : written.error().message,
                       begun);
  }
  if (!written) return written;
  newest_ = 1 - newest_;
  ++sequence_;
  bytes_ = std::move(bytes);
  return mark(kDone);
}

}  // namespace dlock::file
