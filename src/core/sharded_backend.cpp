// A key has one shard, and everything that is promised of a lock is promised by that shard: so
// there is nothing to agree on.  What must be the same for all clients is the placement alone.
#include "core/sharded_backend.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/shards.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock {
namespace {

using util::in_quotes;
using util::Level;

Error all_of(const std::vector<Error>& errors) {
  Error out = errors.front();
  for (std::size_t i = 1; i < errors.size(); ++i) out.message += "; " + errors[i].message;
  return out;
}

Error need_one_database() {
  return {Errc::unsupported, "unique numbers need one database for all; name one with --backend"};
}

class ShardedBackend final : public Backend {
 public:
  // `shards` by their names, so that the order of the list shows nowhere.
  ShardedBackend(const BackendEntry& entry, const std::map<std::string, Target>& shards);

  std::string location() const override;
  std::string location_of(std::string_view key) const override {
    return location_of(shards_[shard_of(key, names_)]);
  }

  Result<std::unique_ptr<Lease>> acquire(const Request& request, const Wait& wait) override {
    return ask(request.key, kNever, wait.cancel,
               [&](Backend& shard) { return shard.acquire(request, wait); });
  }
  Result<std::vector<LockInfo>> list(std::string_view prefix, Deadline deadline) override;
  Result<Listing> list_reachable(std::string_view prefix, Deadline deadline) override;
  Result<LockInfo> inspect(std::string_view key, Deadline deadline) override {
    return ask(key, deadline, Cancel(),
               [&](Backend& shard) { return shard.inspect(key, deadline); });
  }
  Result<bool> force_release(std::string_view key, std::string_view owner_id, const Reason& reason,
                             Deadline deadline) override {
    return ask(key, deadline, Cancel(), [&](Backend& shard) {
      return shard.force_release(key, owner_id, reason, deadline);
    });
  }
  Result<std::unique_ptr<Lease>> resume(const LockInfo& lock, const LockInfo::Holder& holder,
                                        Millis ttl, Deadline deadline) override {
    return ask(lock.key, deadline, Cancel(),
               [&](Backend& shard) { return shard.resume(lock, holder, ttl, deadline); });
  }
  // A counter that is in another shard once the list of shards has changed would begin with 1
  // again, and each shard would lease the same workers.
  Result<std::uint64_t> take_numbers(std::string_view, std::uint64_t, Deadline) override {
    return need_one_database();
  }
  Result<IdWindow> lease_window(Millis, Deadline) override { return need_one_database(); }
  Result<std::optional<Mark>> find_mark(const MarkName& name, Deadline deadline) override {
    return ask(name.key, deadline, Cancel(),
               [&](Backend& shard) { return shard.find_mark(name, deadline); });
  }
  Result<void> prepare_marks(std::string_view key, Deadline deadline) override {
    return ask(key, deadline, Cancel(),
               [&](Backend& shard) { return shard.prepare_marks(key, deadline); });
  }
  Result<std::vector<Mark>> list_marks(std::string_view prefix, Deadline deadline) override;
  Result<bool> forget_mark(const MarkName& name, Deadline deadline) override {
    return ask(name.key, deadline, Cancel(),
               [&](Backend& shard) { return shard.forget_mark(name, deadline); });
  }

 private:
  struct Shard {
    Target target;
    std::unique_ptr<Backend> backend;  // null until it is needed
  };

  static std::string location_of(const Shard& shard) {
    return shard.backend ? shard.backend->location() : shard.target.url.redacted();
  }
  Result<void> open(Shard& shard, Deadline deadline, Cancel cancel);
  template <class Question>
  std::invoke_result_t<Question, Backend&> ask(std::string_view key, Deadline deadline,
                                               Cancel cancel, Question question);
  Result<std::vector<LockInfo>> list_of(Shard& shard, std::string_view prefix, Deadline deadline);
  void warn_of_strays(const std::vector<LockInfo>& locks, std::size_t shard) const;

  const BackendEntry& entry_;
  std::vector<Shard> shards_;
  std::vector<std::string> names_;  // of each
};

ShardedBackend::ShardedBackend(const BackendEntry& entry,
                               const std::map<std::string, Target>& shards)
    : entry_(entry) {
  for (const auto& [name, target] : shards) {
    names_.push_back(name);
    shards_.push_back({target, nullptr});
  }
}

std::string ShardedBackend::location() const {
  std::string out;
  for (const Shard& shard : shards_) out += (out.empty() ? "" : " + ") + location_of(shard);
  return out;
}

Result<void> ShardedBackend::open(Shard& shard, Deadline deadline, Cancel cancel) {
  if (shard.backend) return {};
  const Deadline answered_by =
      std::min(deadline, after(Clock::now(), shard.target.connect_timeout));
  auto backend = entry_.open(shard.target, answered_by, cancel);
  if (!backend) return backend.error();
  shard.backend = std::move(*backend);
  return {};
}

// Whoever is told that a server is down should know that this is not the end of all locks.
template <class Question>
std::invoke_result_t<Question, Backend&> ShardedBackend::ask(std::string_view key,
                                                             Deadline deadline, Cancel cancel,
                                                             Question question) {
  Shard& shard = shards_[shard_of(key, names_)];
  const std::string rank = ", one of " + std::to_string(shards_.size());
  const auto with_shard = [&](Error error) {
    if (error.code == Errc::unreachable || error.code == Errc::denied) {
      error.message += "; this is the shard of " + in_quotes(key) + rank;
    }
    return error;
  };
  if (!shard.backend) {
    const auto opened = open(shard, deadline, cancel);
    util::log(Level::detail, "the shard of " + in_quotes(key) + " is " + location_of(shard) + rank);
    if (!opened) return with_shard(opened.error());
  }
  auto answer = question(*shard.backend);
  if (!answer) return with_shard(answer.error());
  return answer;
}

Result<std::vector<LockInfo>> ShardedBackend::list_of(Shard& shard, std::string_view prefix,
                                                      Deadline deadline) {
  if (auto ok = open(shard, deadline, Cancel()); !ok) return ok.error();
  return shard.backend->list(prefix, deadline);
}

// Nobody who has this list would see such a lock, and so it excludes none of them.
void ShardedBackend::warn_of_strays(const std::vector<LockInfo>& locks, std::size_t shard) const {
  const LockInfo* first = nullptr;
  std::size_t count = 0;
  for (const LockInfo& lock : locks) {
    if (shard_of(lock.key, names_) == shard) continue;
    if (count++ == 0) first = &lock;
  }
  if (first == nullptr) return;
  util::log(Level::warning,
            in_quotes(first->key) +
                (count > 1 ? " and " + std::to_string(count - 1) + " more are" : " is") + " in " +
                location_of(shards_[shard]) +
                ", which by this list is not the shard: whoever took it there has another list of "
                "shards, or two of them are one database");
}

Result<Listing> ShardedBackend::list_reachable(std::string_view prefix, Deadline deadline) {
  Listing all;
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    auto found = list_of(shards_[i], prefix, deadline);
    if (!found) {
      all.missing.push_back({found.error().code, "the locks of shard " + location_of(shards_[i]) +
                                                     " are missing: " + found.error().message});
      continue;
    }
    warn_of_strays(found.value(), i);
    std::move(found->begin(), found->end(), std::back_inserter(all.locks));
  }
  if (all.missing.size() == shards_.size()) return all_of(all.missing);
  std::stable_sort(all.locks.begin(), all.locks.end(),
                   [](const LockInfo& one, const LockInfo& two) { return one.key < two.key; });
  return all;
}

Result<std::vector<LockInfo>> ShardedBackend::list(std::string_view prefix, Deadline deadline) {
  auto all = list_reachable(prefix, deadline);
  if (!all) return all.error();
  if (!all->missing.empty()) return all_of(all->missing);
  return std::move(all->locks);
}

Result<std::vector<Mark>> ShardedBackend::list_marks(std::string_view prefix, Deadline deadline) {
  std::vector<Mark> all;
  for (Shard& shard : shards_) {
    if (auto ok = open(shard, deadline, Cancel()); !ok) return ok.error();
    auto found = shard.backend->list_marks(prefix, deadline);
    if (!found) return found.error();
    std::move(found->begin(), found->end(), std::back_inserter(all));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Mark& one, const Mark& two) { return one.name < two.name; });
  return all;
}

}  // namespace

Result<std::unique_ptr<Backend>> open_backend(const BackendEntry& entry, const Target& target,
                                              Deadline deadline, Cancel cancel) {
  if (target.shards.empty()) return entry.open(target, deadline, cancel);
  std::map<std::string, Target> shards;
  for (const Target& shard : target.shards) {
    auto name = entry.place(shard);
    if (!name) return name.error();
    shards.emplace(std::move(*name), shard);
  }
  return std::make_unique<ShardedBackend>(entry, shards);
}

}  // namespace dlock
