#include "backends/file/numbers.hpp"

#include <chrono>

#include "backends/file/durable_file.hpp"
#include "backends/file/state_dir.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

// No counter has this name: an encoded name has no ~.
const std::string kWorkersFile = "~workers";

Result<Place> place_of_workers(const LockDir& locks) {
  auto dir = open_counter_dir(locks);
  if (!dir) return dir.error();
  std::string shown = (*dir)->path() + '/' + kWorkersFile;
  return Place{
      .dir = std::move(*dir), .folder = {}, .leaf = kWorkersFile, .shown = std::move(shown)};
}

Result<Place> place_of_counter(const LockDir& locks, std::string_view name) {
  auto dir = open_counter_dir(locks);
  if (!dir) return dir.error();
  auto place = place_of(std::move(*dir), name, Missing::create);
  if (!place) return place.error();
  return std::move(**place);
}

}  // namespace

Result<std::uint64_t> take_numbers(const LockDir& locks, std::string_view name, std::uint64_t count,
                                   Deadline deadline) {
  auto place = place_of_counter(locks, name);
  if (!place) return place.error();
  auto file = DurableFile::open(std::move(*place), deadline);
  if (!file) return file.error();
  const auto text = file->read();
  if (!text) return text.error();
  const auto last = util::parse_int(text.value().value_or("0"), 0, INT64_MAX);
  if (!last) return not_a_counter(util::printable(file->path()));
  auto first = numbers_after(name, static_cast<std::uint64_t>(*last), count);
  if (!first) return first;
  if (auto ok = file->write(std::to_string(*first + count - 1)); !ok) return ok.error();
  return first;
}

Result<IdWindow> lease_window(const LockDir& locks, Millis length, Deadline deadline) {
  auto place = place_of_workers(locks);
  if (!place) return place.error();
  auto file = DurableFile::open(std::move(*place), deadline);
  if (!file) return file.error();
  const auto text = file->read();
  if (!text) return text.error();
  auto ends = parse_worker_ends(text.value().value_or(""));
  if (!ends) return not_a_counter(util::printable(file->path()));
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  auto window = take_window(*ends, std::chrono::duration_cast<Millis>(now).count(), length,
                            util::printable(file->path()));
  if (!window) return window;
  if (auto ok = file->write(format_worker_ends(*ends)); !ok) return ok.error();
  return window;
}

}  // namespace dlock::file
