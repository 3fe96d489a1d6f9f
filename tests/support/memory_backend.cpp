// State: {"locks": {key: {"fence": n, "holders": [...], "queue": [...]}}, "revoked": {id: why}}.
// Every operation is one transaction under flock(2) on the file.  Waiters are woken by inotify when
// the file was written, by the earliest expiry, and by the death of the process ahead of them.
#include "support/memory_backend.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/marks.hpp"
#include "core/owner_json.hpp"
#include "core/queue.hpp"
#include "core/spelling.hpp"
#include "util/fd.hpp"
#include "util/host.hpp"
#include "util/poll.hpp"
#include "util/random_id.hpp"
#include "util/text.hpp"

namespace dlock::test {
namespace {

using nlohmann::json;

constexpr Traits kTraits{.shared = true,
                         .slots = true,
                         .fencing = true,
                         .knows_waiters = true,
                         .remembers = true,
                         .resumes = true,
                         .reach = Traits::Reach::host,
                         .ends_on = Traits::EndsOn::ttl,
                         .order = Traits::Order::fifo};

std::int64_t now_ns() { return Clock::now().time_since_epoch().count(); }
Deadline instant(std::int64_t ns) { return Deadline(std::chrono::nanoseconds(ns)); }

json owner_json(const Owner& owner) {
  json out{{"id", owner.id},
           {"host", owner.host},
           {"pid", owner.pid},
           {"user", owner.user},
           {"command", owner.command}};
  if (owner.label) out["label"] = *owner.label;
  if (owner.kind != Owner::Kind::run) out["kind"] = kind_name(owner.kind);
  if (owner.lease) out["lease_ms"] = owner.lease->count();
  return out;
}

Owner owner_of(const json& entry) { return owner_from_json(entry); }

Millis millis_since(std::int64_t ns) {
  return std::chrono::duration_cast<Millis>(std::chrono::nanoseconds(now_ns() - ns));
}

Claim claim_of(const json& entry) {
  return {parse_mode(std::string(entry["mode"])).value_or(Mode::exclusive), entry["slots"]};
}

// The state, locked while this lives.  What was changed is written by save().
class Transaction {
 public:
  explicit Transaction(const std::string& path)
      : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (!fd_) return;
    while (::flock(fd_.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
    std::string text;
    std::array<char, 65'536> buffer;
    for (;;) {
      const ssize_t got =
          ::pread(fd_.get(), buffer.data(), buffer.size(), static_cast<off_t>(text.size()));
      if (got <= 0) break;
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    state = json::parse(text, nullptr, false);
    if (!state.is_object()) state = {{"locks", json::object()}, {"revoked", json::object()}};
  }
  ~Transaction() {
    if (fd_) ::flock(fd_.get(), LOCK_UN);
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  bool ok() const { return static_cast<bool>(fd_); }

  /// The lock without the holders that have expired and the waiters that are dead.
  json& lock(const std::string& key) {
    json& lock = state["locks"][key];
    if (lock.is_null()) {
      lock = {{"fence", 0}, {"holders", json::array()}, {"queue", json::array()}};
    }
    const std::int64_t now = now_ns();
    erase(lock["holders"], [&](const json& h) { return h["expires"].get<std::int64_t>() <= now; });
    erase(lock["queue"], [](const json& w) {
      return ::kill(w["process"].get<pid_t>(), 0) != 0 && errno == ESRCH;
    });
    return lock;
  }

  template <class Predicate>
  static bool erase(json& array, Predicate predicate) {
    json kept = json::array();
    for (json& entry : array) {
      if (!predicate(entry)) kept.push_back(entry);
    }
    const bool erased = kept.size() != array.size();
    array = std::move(kept);
    return erased;
  }

  void save() {
    const std::string text = state.dump(-1, ' ', false, json::error_handler_t::replace);
    [[maybe_unused]] const ssize_t wrote = ::pwrite(fd_.get(), text.data(), text.size(), 0);
    [[maybe_unused]] const int cut = ::ftruncate(fd_.get(), static_cast<off_t>(text.size()));
  }

  json state;

 private:
  Fd fd_;
};

LockInfo info_of(const std::string& key, const json& lock) {
  LockInfo info{.key = key};
  for (const json& entry : lock["holders"]) {
    LockInfo::Holder holder{.owner = owner_of(entry), .acquired_at = entry["acquired_at"]};
    holder.held = millis_since(entry["acquired"]);
    holder.expires = remaining(instant(entry["expires"]));
    holder.fence = entry["fence"].get<std::uint64_t>();
    info.mode = parse_mode(entry["mode"].get<std::string>()).value_or(Mode::exclusive);
    info.slots = entry["slots"];
    if (entry["slot"] != 0) holder.slot = entry["slot"].get<unsigned>();
    info.holders.push_back(std::move(holder));
  }
  info.waiters.emplace();
  for (const json& entry : lock["queue"]) {
    LockInfo::Waiter waiter{.owner = owner_of(entry)};
    waiter.mode = parse_mode(entry["mode"].get<std::string>()).value_or(Mode::exclusive);
    waiter.waiting = millis_since(entry["since"]);
    info.waiters->push_back(std::move(waiter));
  }
  return info;
}

Error unreachable(const std::string& path) {
  return {Errc::unreachable, "memory " + path + ": " + std::strerror(errno)};
}

Fd watch(const std::string& path, std::uint32_t mask) {
  Fd fd(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (fd) inotify_add_watch(fd.get(), path.c_str(), mask);
  return fd;
}

void drain(int fd) {
  std::array<char, 4'096> buffer;
  while (::read(fd, buffer.data(), buffer.size()) > 0) {
  }
}

std::string record_key(const RecordName& name) {
  return (name.kind == RecordKind::mark ? "mark " : "number ") + name.key + ' ' + name.period;
}

std::int64_t now_ms() { return static_cast<std::int64_t>(util::utc_now_ms()); }

void write_record(Transaction& transaction, const RecordName& name, const std::string& text) {
  transaction.state["records"][record_key(name)] = {{"kind", name.kind},
                                                    {"key", name.key},
                                                    {"period", name.period},
                                                    {"text", text},
                                                    {"version", util::random_id()},
                                                    {"written", now_ms()}};
}

StoredRecord record_in(const json& entry) {
  return {.name = {entry["kind"], entry["key"], entry["period"]},
          .text = entry["text"],
          .version = entry["version"],
          .written = entry["written"]};
}

class MemoryRecords final : public Records {
 public:
  explicit MemoryRecords(std::string path) : path_(std::move(path)) {}

  std::string shown(const RecordName& name) const override {
    return path_ + ": " + record_key(name);
  }
  Result<RecordLook> read(const RecordName& name, Deadline) override {
    return look(
        [&](const json& entry) { return record_key(record_in(entry).name) == record_key(name); });
  }
  Result<RecordLook> list(std::string_view prefix, Deadline) override {
    return look([&](const json& entry) {
      const RecordName name = record_in(entry).name;
      return name.kind == RecordKind::mark && name.key.starts_with(prefix);
    });
  }
  Result<bool> write(const RecordName& name, const std::string& version, const std::string& text,
                     Deadline) override {
    Transaction transaction(path_);
    if (!transaction.ok()) return unreachable(path_);
    if (version_of(transaction, name) != version) return false;
    write_record(transaction, name, text);
    transaction.save();
    return true;
  }
  Result<std::size_t> remove(std::span<const StoredRecord> seen, Deadline) override {
    Transaction transaction(path_);
    if (!transaction.ok()) return unreachable(path_);
    std::size_t count = 0;
    for (const StoredRecord& record : seen) {
      if (version_of(transaction, record.name) != record.version) continue;
      count += transaction.state["records"].erase(record_key(record.name));
    }
    transaction.save();
    return count;
  }
  Result<void> prepare(std::string_view, Deadline) override { return {}; }
  Result<RecordLook> sample(std::string_view, Deadline deadline) override {
    return list("", deadline);
  }

 private:
  template <class Is>
  Result<RecordLook> look(Is is) const {
    Transaction transaction(path_);
    if (!transaction.ok()) return unreachable(path_);
    RecordLook out{.records = {}, .now = now_ms()};
    for (const auto& [key, entry] : transaction.state["records"].items()) {
      if (is(entry)) out.records.push_back(record_in(entry));
    }
    return out;
  }
  static std::string version_of(Transaction& transaction, const RecordName& name) {
    const json& entry = transaction.state["records"][record_key(name)];
    if (!entry.is_null()) return entry["version"];
    transaction.state["records"].erase(record_key(name));
    return "";
  }

  const std::string path_;
};

class MemoryLease final : public Lease {
 public:
  MemoryLease(std::string path, Request request, std::uint64_t fence, unsigned slot,
              Deadline valid_until)
      : path_(std::move(path)),
        request_(std::move(request)),
        fence_(fence),
        slot_(slot),
        valid_(valid_until) {}

  const std::string& owner_id() const override { return request_.owner.id; }
  std::optional<std::uint64_t> fence() const override { return fence_; }
  std::optional<unsigned> slot() const override {
    return slot_ == 0 ? std::nullopt : std::optional(slot_);
  }
  Deadline valid_until() const override { return valid_; }

  Result<void> renew(Deadline, Cancel) override {
    if (event_) drain(event_.get());
    const Deadline before = Clock::now();
    return change([&](json& holder) {
      holder["expires"] = (Clock::now() + request_.ttl).time_since_epoch().count();
      valid_ = valid_for(before, request_.ttl);
    });
  }

  Result<void> end_command(Deadline until, Deadline, Cancel) override {
    return change([&](json& holder) {
      holder["expires"] = until.time_since_epoch().count();
      holder["ended"] = true;
      holder["pid"] = 0;
    });
  }

  // A file appears beside the state for an instant when a lock is taken away: the state itself is
  // written at each renewal, and two holders would wake each other for ever.
  int event_fd() override {
    if (!event_) event_ = watch(std::filesystem::path(path_).parent_path(), IN_CREATE);
    return event_.get();
  }

  Result<void> release(Deadline, Cancel) override {
    Transaction transaction(path_);
    if (!transaction.ok()) return unreachable(path_);
    json& holders = transaction.lock(request_.key)["holders"];
    if (!Transaction::erase(holders, [&](const json& h) { return h["id"] == request_.owner.id; })) {
      return lost(transaction);
    }
    transaction.save();
    return {};
  }

  Result<void> complete(const Completion& completion, Deadline, Cancel) override {
    Transaction transaction(path_);
    if (!transaction.ok()) return unreachable(path_);
    json& holders = transaction.lock(request_.key)["holders"];
    if (!Transaction::erase(holders, [&](const json& h) { return h["id"] == request_.owner.id; })) {
      return lost(transaction);
    }
    write_record(transaction, record_of({request_.key, completion.period}),
                 format_mark(request_.owner, fence_, completion.remember));
    transaction.save();
    return {};
  }

  static Deadline valid_for(Deadline before, Millis ttl) {
    return before + ttl - ttl / 50 - Millis{2};
  }

 private:
  template <class Change>
  Result<void> change(Change change) {
    Transaction transaction(path_);
    if (!transaction.ok()) return unreachable(path_);
    for (json& holder : transaction.lock(request_.key)["holders"]) {
      if (holder["id"] != request_.owner.id) continue;
      change(holder);
      transaction.save();
      return {};
    }
    return lost(transaction);
  }

  Error lost(const Transaction& transaction) const {
    const json& revoked = transaction.state["revoked"];
    const auto why = revoked.find(request_.owner.id);
    if (why != revoked.end()) return taken_away("memory", request_.key, why->get<std::string>());
    return {Errc::lost, util::in_quotes(request_.key) + " has expired"};
  }

  std::string path_;
  Request request_;
  std::uint64_t fence_;
  unsigned slot_;  // 0: of another mode
  Deadline valid_;
  Fd event_;
};

class MemoryBackend final : public Backend {
 public:
  explicit MemoryBackend(std::string path) : path_(std::move(path)), records_(path_) {}

  std::string location() const override { return "memory://" + path_; }

  Result<std::unique_ptr<Lease>> acquire(const Request& request, const Wait& wait) override {
    Attempt attempt{path_, request, wait};
    auto lease = attempt.run();
    if (!lease || !*lease) attempt.leave();
    return lease;
  }

  Result<std::vector<LockInfo>> list(std::string_view prefix, Deadline) override {
    Transaction transaction(path_);
    if (!transaction.ok()) return unreachable(path_);
    std::vector<std::string> keys;
    for (const auto& [key, lock] : transaction.state["locks"].items()) {
      if (key.starts_with(prefix)) keys.push_back(key);
    }
    std::sort(keys.begin(), keys.end());
    std::vector<LockInfo> out;
    for (const std::string& key : keys) {
      LockInfo info = info_of(key, transaction.lock(key));
      if (!info.holders.empty() || !info.waiters->empty()) out.push_back(std::move(info));
    }
    return out;
  }

  Result<LockInfo> inspect(std::string_view key, Deadline) override {
    Transaction transaction(path_);
    if (!transaction.ok()) return unreachable(path_);
    return info_of(std::string(key), transaction.lock(std::string(key)));
  }

  Result<bool> force_release(std::string_view key, std::string_view owner_id, const Reason& reason,
                             Deadline) override {
    Transaction transaction(path_);
    if (!transaction.ok()) return unreachable(path_);
    json& holders = transaction.lock(std::string(key))["holders"];
    if (!Transaction::erase(holders, [&](const json& h) { return h["id"] == owner_id; })) {
      return false;
    }
    transaction.state["revoked"][std::string(owner_id)] = format_reason(reason);
    transaction.save();
    const std::string signal = path_ + ".revoked." + util::random_id();
    const Fd created(::open(signal.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    ::unlink(signal.c_str());
    return true;
  }

  Result<std::unique_ptr<Lease>> resume(const LockInfo& lock, const LockInfo::Holder& holder,
                                        Millis ttl, Deadline) override {
    Request request{.key = lock.key, .mode = lock.mode, .slots = lock.slots, .ttl = ttl};
    request.owner = holder.owner;
    return std::make_unique<MemoryLease>(path_, std::move(request), holder.fence.value_or(0),
                                         holder.slot.value_or(0), Deadline{});
  }

  Records* records() override { return &records_; }

 private:
  struct Attempt {
    const std::string& path;
    const Request& request;
    const Wait& wait;
    bool queued = false;
    std::vector<std::string> told{};

    Result<std::unique_ptr<Lease>> run() {
      Fd written;
      for (;;) {
        Deadline next = wait.until;
        Fd ahead;
        LockInfo seen;
        {
          const Deadline before = Clock::now();
          Transaction transaction(path);
          if (!transaction.ok()) return unreachable(path);
          json& lock = transaction.lock(request.key);
          const Turn turn = turn_in(lock);
          if (turn.kind == Turn::Kind::granted) return grant(transaction, lock, before);
          if (turn.kind == Turn::Kind::refused) {
            return mode_conflict(request.key, request.claim(), claim_of(lock["holders"][0]));
          }
          if (wait.until <= Clock::now()) {
            seen = info_of(request.key, lock);
          } else {
            if (!queued) enqueue(transaction, lock);
            for (const json& holder : lock["holders"]) {
              next = std::min(next, instant(holder["expires"]));
            }
            ahead = process_ahead(lock);
            seen = info_of(request.key, lock);
            if (!written) written = watch(path, IN_MODIFY);
          }
        }
        tell(seen);
        if (wait.until <= Clock::now())
          return Error{Errc::busy, util::in_quotes(request.key) + " is held"};
        if (wait.cancel.requested()) return cancelled();
        std::array<pollfd, 3> fds{pollfd{written.get(), POLLIN, 0},
                                  pollfd{wait.cancel.fd(), POLLIN, 0},
                                  pollfd{ahead.get(), POLLIN, 0}};
        util::poll(fds, next);
        if (fds[1].revents != 0) return cancelled();
        drain(written.get());
      }
    }

    Error cancelled() const {
      return {Errc::cancelled, "stopped waiting for " + util::in_quotes(request.key)};
    }

    void leave() {
      if (!queued) return;
      Transaction transaction(path);
      if (!transaction.ok()) return;
      json& queue = transaction.lock(request.key)["queue"];
      if (Transaction::erase(queue, [&](const json& w) { return w["id"] == request.owner.id; })) {
        transaction.save();
      }
    }

    // Behind the holders and those that came before.
    Turn turn_in(const json& lock) const {
      std::vector<Queued> queue;
      for (const json& holder : lock["holders"]) queue.push_back({claim_of(holder)});
      for (const json& waiter : lock["queue"]) {
        if (waiter["id"] == request.owner.id) break;
        queue.push_back({claim_of(waiter)});
      }
      queue.push_back({request.claim()});
      return turn_of(queue, queue.size() - 1);
    }

    Result<std::unique_ptr<Lease>> grant(Transaction& transaction, json& lock, Deadline before) {
      Transaction::erase(lock["queue"], [&](const json& w) { return w["id"] == request.owner.id; });
      const std::uint64_t fence = lock["fence"].get<std::uint64_t>() + 1;
      lock["fence"] = fence;
      json holder = owner_json(request.owner);
      holder["mode"] = mode_name(request.mode);
      holder["slots"] = request.slots;
      holder["fence"] = fence;
      std::vector<unsigned> taken;
      for (const json& other : lock["holders"]) taken.push_back(other["slot"]);
      const unsigned slot = request.mode == Mode::slots ? free_slot(taken, request.slots) : 0;
      holder["slot"] = slot;
      holder["acquired_at"] = util::utc_now();
      holder["acquired"] = now_ns();
      holder["expires"] = (Clock::now() + request.ttl).time_since_epoch().count();
      lock["holders"].push_back(std::move(holder));
      transaction.save();
      queued = false;
      return std::make_unique<MemoryLease>(path, request, fence, slot,
                                           MemoryLease::valid_for(before, request.ttl));
    }

    void enqueue(Transaction& transaction, json& lock) {
      json waiter = owner_json(request.owner);
      waiter["mode"] = mode_name(request.mode);
      waiter["slots"] = request.slots;
      waiter["process"] = getpid();
      waiter["since"] = now_ns();
      lock["queue"].push_back(std::move(waiter));
      transaction.save();
      queued = true;
    }

    // Its death is no change of the file.
    Fd process_ahead(const json& lock) const {
      pid_t pid = 0;
      for (const json& waiter : lock["queue"]) {
        if (waiter["id"] == request.owner.id) break;
        pid = waiter["process"].get<pid_t>();
      }
      if (pid == 0 || pid == getpid()) return Fd();
      return Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    }

    void tell(const LockInfo& seen) {
      std::vector<std::string> ids;
      for (const auto& holder : seen.holders) ids.push_back(holder.owner.id);
      if (!wait.on_blocked || ids.empty() || ids == told) return;
      told = ids;
      wait.on_blocked(seen);
    }
  };

  std::string path_;
  MemoryRecords records_;
};

Result<std::string> place(const Target& target) {
  if (!target.url.hosts.empty()) return Error{Errc::invalid, "memory has no host"};
  return "memory://" + canonical_path(target.url.path);
}

const std::string& private_path() {
  static const struct Store {
    std::string path = "/dev/shm/dlock-memory-" + util::random_id();
    Store() { std::filesystem::create_directory(path); }
    ~Store() { std::filesystem::remove_all(path); }
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;
  } store;
  static const std::string path = store.path + "/state";
  return path;
}

Result<std::unique_ptr<Backend>> open(const Target& target, Deadline, Cancel) {
  const std::string path = target.url.path.empty() ? private_path() : target.url.path;
  const Fd exists(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!exists) return unreachable(path);
  return std::make_unique<MemoryBackend>(path);
}

}  // namespace

BackendEntry memory_entry() {
  static constexpr std::array kForms{
      UrlForm{.scheme = "memory", .example = "memory:///dev/shm/dir/store"}};
  return {.name = "memory",
          .forms = kForms,
          .brief = "a leased lock service in a file, for tests",
          .traits = kTraits,
          .place = place,
          .open = open};
}

}  // namespace dlock::test
