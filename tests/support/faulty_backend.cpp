#include "support/faulty_backend.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>

#include "support/memory_backend.hpp"
#include "support/test_registry.hpp"
#include "util/duration.hpp"
#include "util/fd.hpp"
#include "util/poll.hpp"
#include "util/text.hpp"

namespace dlock::test {
namespace {

struct Fault {
  std::string kind;
  Millis duration{0};
};

// The control file and its log.  Shared by a backend and its leases.
class Control {
 public:
  explicit Control(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  std::optional<Fault> next(const std::string& call) {
    log(call);
    std::ifstream file(path_);
    std::string line;
    while (std::getline(file, line)) {
      std::istringstream words(line);
      std::string name;
      Fault fault;
      if (!(words >> name >> fault.kind) || name != call) continue;
      std::string word;
      if (fault.kind == "ignore-deadline" && words >> word) {
        fault.duration = util::parse_duration(word).value_or(Millis{0});
      }
      long long count = 0;
      const std::lock_guard lock(mutex_);
      if (words >> count && used_[line] >= count) continue;
      ++used_[line];
      return fault;
    }
    return std::nullopt;
  }

 private:
  void log(const std::string& call) {
    const auto now = std::chrono::duration_cast<Millis>(Clock::now().time_since_epoch());
    const std::string line = call + ' ' + std::to_string(now.count()) + '\n';
    const Fd fd(::open((path_ + ".log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    [[maybe_unused]] const ssize_t wrote = ::write(fd.get(), line.data(), line.size());
  }

  std::string path_;
  std::mutex mutex_;
  std::map<std::string, long long> used_;
};

// The error of a fault that needs no answer from the wrapped backend; none for `late`.
std::optional<Error> fail(const Fault& fault, Deadline deadline, Cancel cancel) {
  const auto error = [&](Errc code) { return Error{code, "faulty: " + fault.kind}; };
  if (fault.kind == "denied") return error(Errc::denied);
  if (fault.kind == "lost") return error(Errc::lost);
  if (fault.kind == "unreachable") return error(Errc::unreachable);
  if (fault.kind == "hang") {
    pollfd item{cancel.fd(), POLLIN, 0};
    return error(util::poll({&item, 1}, deadline) > 0 ? Errc::cancelled : Errc::unreachable);
  }
  if (fault.kind == "ignore-deadline") {
    util::poll({}, after(Clock::now(), fault.duration));
    return error(Errc::unreachable);
  }
  if (fault.kind == "late") return std::nullopt;
  return Error{Errc::invalid, "faulty: unknown fault " + util::in_quotes(fault.kind)};
}

class FaultyLease final : public Lease {
 public:
  FaultyLease(std::unique_ptr<Lease> wrapped, std::shared_ptr<Control> control)
      : wrapped_(std::move(wrapped)), control_(std::move(control)) {}

  const std::string& owner_id() const override { return wrapped_->owner_id(); }
  std::optional<Millis> granted_ttl() const override { return wrapped_->granted_ttl(); }
  std::optional<std::uint64_t> fence() const override { return wrapped_->fence(); }
  std::optional<unsigned> slot() const override { return wrapped_->slot(); }
  Deadline valid_until() const override { return wrapped_->valid_until(); }
  int event_fd() override { return wrapped_->event_fd(); }
  bool has_news() override { return wrapped_->has_news(); }
  void subscribe() override { wrapped_->subscribe(); }
  std::vector<int> lock_fds() const override { return wrapped_->lock_fds(); }

  Result<void> renew(Deadline deadline, Cancel cancel) override {
    const Deadline old = valid_until();
    const auto fault = control_->next("renew");
    if (fault) {
      if (auto error = fail(*fault, deadline, cancel)) return *error;
    }
    Result<void> outcome = wrapped_->renew(deadline, cancel);
    if (fault && old != kNever) util::poll({}, old + Millis{1});
    return outcome;
  }

  Result<void> end_command(Deadline until, Deadline deadline, Cancel cancel) override {
    const auto fault = control_->next("end_command");
    if (fault) {
      if (auto error = fail(*fault, deadline, cancel)) return *error;
    }
    return wrapped_->end_command(until, deadline, cancel);
  }

  Result<void> release(Deadline deadline, Cancel cancel) override {
    const auto fault = control_->next("release");
    if (fault) {
      if (auto error = fail(*fault, deadline, cancel)) return *error;
    }
    return wrapped_->release(deadline, cancel);
  }

  Result<void> complete(const Completion& completion, Deadline deadline, Cancel cancel) override {
    const auto fault = control_->next("complete");
    if (fault) {
      if (auto error = fail(*fault, deadline, cancel)) return *error;
    }
    auto done = wrapped_->complete(completion, deadline, cancel);
    if (fault) return Error{Errc::unreachable, "faulty: late"};
    return done;
  }

 private:
  std::unique_ptr<Lease> wrapped_;
  std::shared_ptr<Control> control_;
};

class FaultyBackend final : public Backend {
 public:
  FaultyBackend(std::unique_ptr<Backend> wrapped, std::shared_ptr<Control> control)
      : wrapped_(std::move(wrapped)), control_(std::move(control)) {}

  std::string location() const override {
    return "faulty://" + control_->path() + "?wrap=" + wrapped_->location();
  }

  Result<std::unique_ptr<Lease>> acquire(const Request& request, const Wait& wait) override {
    const auto fault = control_->next("acquire");
    if (fault) {
      if (auto error = fail(*fault, wait.until, wait.cancel)) return *error;
    }
    auto lease = wrapped_->acquire(request, wait);
    if (!lease) return lease.error();
    const Deadline valid = (*lease)->valid_until();
    if (fault && valid != kNever) util::poll({}, valid + Millis{1});
    return std::make_unique<FaultyLease>(std::move(*lease), control_);
  }

  Result<std::vector<LockInfo>> list(std::string_view prefix, Deadline deadline) override {
    if (auto error = fault_of("list", deadline)) return *error;
    return wrapped_->list(prefix, deadline);
  }

  Result<LockInfo> inspect(std::string_view key, Deadline deadline) override {
    if (auto error = fault_of("inspect", deadline)) return *error;
    return wrapped_->inspect(key, deadline);
  }

  Result<bool> force_release(std::string_view key, std::string_view owner_id, const Reason& reason,
                             Deadline deadline) override {
    if (auto error = fault_of("force_release", deadline)) return *error;
    return wrapped_->force_release(key, owner_id, reason, deadline);
  }

  Result<std::unique_ptr<Lease>> resume(const LockInfo& lock, const LockInfo::Holder& holder,
                                        Millis ttl, Deadline deadline) override {
    auto lease = wrapped_->resume(lock, holder, ttl, deadline);
    if (!lease) return lease.error();
    return std::make_unique<FaultyLease>(std::move(*lease), control_);
  }

  Result<std::uint64_t> take_numbers(std::string_view name, std::uint64_t count,
                                     Deadline deadline) override {
    return wrapped_->take_numbers(name, count, deadline);
  }

  Result<IdWindow> lease_window(Millis length, Deadline deadline) override {
    return wrapped_->lease_window(length, deadline);
  }

  Result<std::optional<Mark>> find_mark(const MarkName& name, Deadline deadline) override {
    if (auto error = fault_of("find_mark", deadline)) return *error;
    return wrapped_->find_mark(name, deadline);
  }

  Result<void> prepare_marks(std::string_view key, Deadline deadline) override {
    if (auto error = fault_of("prepare_marks", deadline)) return *error;
    return wrapped_->prepare_marks(key, deadline);
  }

  Result<std::vector<Mark>> list_marks(std::string_view prefix, Deadline deadline) override {
    return wrapped_->list_marks(prefix, deadline);
  }

  Result<bool> forget_mark(const MarkName& name, Deadline deadline) override {
    return wrapped_->forget_mark(name, deadline);
  }

 private:
  std::optional<Error> fault_of(const std::string& call, Deadline deadline) {
    const auto fault = control_->next(call);
    return fault ? fail(*fault, deadline, Cancel()) : std::nullopt;
  }

  std::unique_ptr<Backend> wrapped_;
  std::shared_ptr<Control> control_;
};

struct Wrapped {
  const BackendEntry* entry = nullptr;
  Target target;
};

Result<Wrapped> wrapped_of(const Target& target) {
  const auto wrap = target.url.query.find("wrap");
  if (wrap == target.url.query.end()) return Error{Errc::invalid, "faulty: ?wrap=URL is missing"};
  auto url = parse_url(wrap->second);
  if (!url) return url.error();
  const BackendEntry* entry = find_backend(url->scheme);
  if (entry == nullptr || entry->open == nullptr) {
    return Error{Errc::invalid, "faulty: no backend " + url->scheme};
  }
  return Wrapped{entry, {.url = *url, .prefix = target.prefix}};
}

Result<std::string> place(const Target& target) {
  auto wrapped = wrapped_of(target);
  if (!wrapped) return wrapped.error();
  return wrapped->entry->place(wrapped->target);
}

Result<std::unique_ptr<Backend>> open(const Target& target, Deadline deadline, Cancel cancel) {
  auto wrapped = wrapped_of(target);
  if (!wrapped) return wrapped.error();
  auto control = std::make_shared<Control>(target.url.path);
  if (const auto fault = control->next("open")) {
    if (auto error = fail(*fault, deadline, cancel)) return *error;
  }
  auto backend = wrapped->entry->open(wrapped->target, deadline, cancel);
  if (!backend) return backend.error();
  return std::make_unique<FaultyBackend>(std::move(*backend), std::move(control));
}

}  // namespace

BackendEntry faulty_entry() {
  BackendEntry entry = memory_entry();  // for its Traits: what is mostly wrapped
  entry.name = "faulty";
  entry.traits.reach = Traits::Reach::network;
  entry.brief = "another backend that fails on command, for tests";
  static constexpr std::array kForms{
      UrlForm{.scheme = "faulty",
              .example = "faulty:///dev/shm/dir/control?wrap=memory:///dev/shm/dir/store"}};
  entry.forms = kForms;
  entry.place = place;
  entry.open = open;
  return entry;
}

std::unique_ptr<Backend> make_faulty(std::unique_ptr<Backend> wrapped, std::string control) {
  return std::make_unique<FaultyBackend>(std::move(wrapped),
                                         std::make_shared<Control>(std::move(control)));
}

}  // namespace dlock::test
