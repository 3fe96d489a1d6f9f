#include "core/backend.hpp"

#include "core/marks.hpp"
#include "util/text.hpp"

namespace dlock {
namespace {

constexpr std::string_view kGivenBack = "given back by ";
constexpr std::string_view kBroken = "force-released by ";

}  // namespace

Error with_origin(Error error, const Target& target) {
  const bool is_denied = error.code == Errc::denied;
  if (!is_denied && error.code != Errc::unreachable) return error;
  if (!target.named_by.empty()) error.message += "; backend from " + target.named_by;
  if (is_denied && !target.password_from.empty()) {
    error.message += "; password from " + target.password_from;
  }
  error.message += "; see: dlock doctor" + target.options;
  return error;
}

std::string format_reason(const Reason& reason) {
  return std::string(reason.given_back ? kGivenBack : kBroken) + std::string(reason.by);
}

Error taken_away(std::string_view where, std::string_view key, std::string_view why) {
  return {.code = Errc::lost,
          .message =
              (where.empty() ? "" : std::string(where) + ": ") + util::in_quotes(std::string(key)) +
              " was " +
              (why.empty() ? std::string(kBroken) + "somebody" : util::printable(std::string(why))),
          .in_order = why.starts_with(kGivenBack)};
}

std::string Backend::location_of(std::string_view) const { return location(); }

Result<Listing> Backend::list_reachable(std::string_view prefix, Deadline deadline) {
  auto locks = list(prefix, deadline);
  if (!locks) return locks.error();
  return Listing{std::move(*locks), {}};
}

Result<std::unique_ptr<Lease>> Backend::resume(const LockInfo&, const LockInfo::Holder&, Millis,
                                               Deadline) {
  return Error{Errc::unsupported,
               location() + ": a lock of this backend ends with the process that acquired it"};
}

Result<std::uint64_t> Backend::take_numbers(std::string_view name, std::uint64_t count,
                                            Deadline deadline) {
  if (!records()) return has_no("counters");
  return dlock::take_numbers(*records(), name, count, deadline);
}

Result<IdWindow> Backend::lease_window(Millis length, Deadline deadline) {
  if (!records()) return has_no("snowflake ids");
  return dlock::lease_window(*records(), location(), length, deadline);
}

Result<void> Lease::complete(const Completion&, Deadline, Cancel) {
  return Error{Errc::unsupported, "this backend remembers no jobs"};
}

Result<std::optional<Mark>> Lease::find_mark(Backend& backend, const MarkName& name,
                                             Deadline deadline) {
  return backend.find_mark(name, deadline);
}

Result<std::optional<Mark>> Backend::find_mark(const MarkName& name, Deadline deadline) {
  if (!records()) return has_no("marks of jobs");
  return dlock::find_mark(*records(), name, deadline);
}

Result<void> Backend::prepare_marks(std::string_view key, Deadline deadline) {
  if (!records()) return has_no("marks of jobs");
  return dlock::prepare_marks(*records(), key, deadline);
}

Result<std::vector<Mark>> Backend::list_marks(std::string_view prefix, Deadline deadline) {
  if (!records()) return has_no("marks of jobs");
  return dlock::list_marks(*records(), prefix, deadline);
}

Result<bool> Backend::forget_mark(const MarkName& name, Deadline deadline) {
  if (!records()) return has_no("marks of jobs");
  return dlock::forget_mark(*records(), name, deadline);
}

Error Backend::has_no(std::string_view what) const {
  return {Errc::unsupported, location() + ": this backend has no " + std::string(what)};
}

}  // namespace dlock
