// Each lock that is held or waited for has a session of its own, with its ttl for a timeout.  Those
// who look share one, which is opened when it is first needed.
#include "backends/zookeeper/zookeeper_backend.hpp"

#include <algorithm>
#include <array>

#include "backends/zookeeper/acquire.hpp"
#include "backends/zookeeper/look.hpp"
#include "backends/zookeeper/numbers.hpp"
#include "backends/zookeeper/once.hpp"
#include "util/log.hpp"

namespace dlock::zookeeper {
namespace {

constexpr Millis kLooking{10'000};  // timeout of that session
constexpr std::size_t kKeysAtOnce = 200;
constexpr std::size_t kLongestReason = 4'000;

class ZookeeperBackend final : public Backend {
 public:
  explicit ZookeeperBackend(Place place)
      : place_(std::make_shared<const Place>(std::move(place))) {}
  ~ZookeeperBackend() override {
    if (session_ && !left_note_) session_->close();
  }

  std::string location() const override { return place_->location; }

  Result<std::unique_ptr<Lease>> acquire(const Request& request, const Wait& wait) override {
    if (auto ok = check_key(request.key); !ok) return ok.error();
    return zookeeper::acquire(place_, request, wait);
  }

  Result<std::vector<LockInfo>> list(std::string_view prefix, Deadline deadline) override;
  Result<LockInfo> inspect(std::string_view key, Deadline deadline) override;
  Result<bool> force_release(std::string_view key, std::string_view owner_id, std::string_view why,
                             Deadline deadline) override;

  Result<std::uint64_t> take_numbers(std::string_view name, std::uint64_t count,
                                     Deadline deadline) override {
    return in_session(deadline, [&] {
      return zookeeper::take_numbers(*session_, *place_, name, count, deadline);
    });
  }
  Result<IdWindow> lease_window(Millis length, Deadline deadline) override {
    return in_session(
        deadline, [&] { return zookeeper::lease_window(*session_, *place_, length, deadline); });
  }

  Result<std::optional<Mark>> find_mark(const MarkName& name, Deadline deadline) override {
    return in_session(deadline,
                      [&] { return zookeeper::find_mark(*session_, *place_, name, deadline); });
  }
  Result<void> prepare_marks(std::string_view key, Deadline deadline) override {
    return in_session(deadline,
                      [&] { return zookeeper::prepare_marks(*session_, *place_, key, deadline); });
  }
  Result<std::vector<Mark>> list_marks(std::string_view prefix, Deadline deadline) override {
    return in_session(deadline,
                      [&] { return zookeeper::list_marks(*session_, *place_, prefix, deadline); });
  }
  Result<bool> forget_mark(const MarkName& name, Deadline deadline) override {
    return in_session(deadline,
                      [&] { return zookeeper::forget_mark(*session_, *place_, name, deadline); });
  }

 private:
  // Without a root and a chroot, one key would be the servers' own node.
  Result<void> check_key(std::string_view key) const {
    if (place_->path_of(key) != "/zookeeper") return {};
    return Error{Errc::invalid, "key \"zookeeper\" belongs to the servers; choose a --prefix"};
  }
  Result<void> open(Deadline deadline);
  // A session that was not used for long may have ended, which only the answer to a request tells.
  template <class Ask>
  std::invoke_result_t<Ask> in_session(Deadline deadline, Ask ask) {
    for (;;) {
      if (auto ok = open(deadline); !ok) return ok.error();
      auto result = ask();
      if (result || result.error().code != Errc::lost || Clock::now() >= deadline) return result;
    }
  }
  Deadline answer_by(Deadline deadline) const { return place_->answer_by(deadline); }
  template <class Ask>
  auto ask(Ask ask, Deadline deadline) {
    return session_->persist(ask, answer_by(deadline), Cancel());
  }
  Result<std::vector<std::string>> children_of(const std::string& path, Deadline deadline);
  Result<void> leave_note(std::string_view owner_id, std::string_view why, Deadline deadline);

  const std::shared_ptr<const Place> place_;
  std::unique_ptr<Session> session_;
  bool left_note_ = false;  // which is to outlive us for a while, and so is the session
};

// With a connection that answers: one that nobody has used for long may have expired.
Result<void> ZookeeperBackend::open(Deadline deadline) {
  deadline = answer_by(deadline);
  if (session_) session_->look();
  if (session_ && session_->connected()) return {};
  if (session_) {
    auto again = session_->open(deadline, Cancel());
    if (again || !session_->expired()) return again;
  }
  session_ = std::make_unique<Session>(place_, kLooking);
  left_note_ = false;
  return session_->open(deadline, Cancel());
}

// None if there is no such node.
Result<std::vector<std::string>> ZookeeperBackend::children_of(const std::string& path,
                                                               Deadline deadline) {
  const auto or_root = [](const std::string& node) { return node.empty() ? "/" : node; };
  const std::string there = or_root(path);
  const std::string chroot = or_root(place_->chroot);
  const auto answers = ask(
      [&] {
        return std::array{get_children(session_->handle(), there, Watch::no),
                          exists(session_->handle(), chroot, Watch::no)};
      },
      deadline);
  if (!answers) return answers.error();
  const Call& listed = answers.value()[0];
  if (listed->code == ZNONODE) {
    if (answers.value()[1]->code == ZNONODE) return no_chroot(*place_);
    return std::vector<std::string>();
  }
  if (!listed->ok()) return session_->refused(listed, "list " + there);
  return listed->names;
}

Result<LockInfo> ZookeeperBackend::inspect(std::string_view key, Deadline deadline) {
  if (auto ok = open(deadline); !ok) return ok.error();
  const std::string path = place_->path_of(key);
  const auto children = children_of(path, deadline);
  if (!children) return children.error();
  return look_at(*session_, path, key, children.value(), true, answer_by(deadline), Cancel());
}

Result<std::vector<LockInfo>> ZookeeperBackend::list(std::string_view prefix, Deadline deadline) {
  if (auto ok = open(deadline); !ok) return ok.error();
  const auto nodes = children_of(place_->base(), deadline);
  if (!nodes) return nodes.error();
  std::vector<std::string> keys;
  for (const std::string& node : nodes.value()) {
    auto key = key_of(node);
    if (key && key->starts_with(prefix)) keys.push_back(std::move(*key));
  }
  std::sort(keys.begin(), keys.end());
  std::vector<LockInfo> locks;
  for (std::size_t from = 0; from < keys.size(); from += kKeysAtOnce) {
    const std::size_t to = std::min(from + kKeysAtOnce, keys.size());
    const auto answers = ask(
        [&] {
          std::vector<Call> calls;
          for (std::size_t i = from; i < to; ++i) {
            calls.push_back(get_children(session_->handle(), place_->path_of(keys[i]), Watch::no));
          }
          return calls;
        },
        deadline);
    if (!answers) return answers.error();
    for (std::size_t i = from; i < to; ++i) {
      const Call& listed = answers.value()[i - from];
      if (listed->code == ZNOAUTH) {  // which must not hide the others
        util::log(util::Level::warning,
                  session_->refused(listed, "list " + place_->path_of(keys[i])).message);
      }
      if (!listed->ok() || queue_of(listed->names).empty()) continue;
      auto info = look_at(*session_, place_->path_of(keys[i]), keys[i], listed->names, true,
                          answer_by(deadline), Cancel());
      if (!info) return info.error();
      if (!info->holders.empty() || !info->waiters->empty()) locks.push_back(std::move(*info));
    }
  }
  return locks;
}

// It goes when our session ends, some seconds after we are gone.
Result<void> ZookeeperBackend::leave_note(std::string_view owner_id, std::string_view why,
                                          Deadline deadline) {
  const std::string folder = place_->base() + '/' + std::string(kBroken);
  const std::string path = folder + '/' + node_of(owner_id);
  const std::string text(why.substr(0, kLongestReason));
  const bool auth = !place_->auth.empty();
  left_note_ = true;
  for (const NodeKind kind : {NodeKind::container, NodeKind::persistent}) {
    for (int tries = 0; tries < 2; ++tries) {
      const auto noted = ask(
          [&] {
            return std::array{create(session_->handle(), path, text, NodeKind::ephemeral, auth)};
          },
          deadline);
      if (!noted) return noted.error();
      if (noted.value()[0]->code != ZNONODE) return {};
      const auto made = ask(
          [&] { return std::array{create(session_->handle(), folder, "", kind, auth)}; }, deadline);
      if (!made) return made.error();
      if (made.value()[0]->code == ZUNIMPLEMENTED) break;
    }
  }
  return {};
}

Result<bool> ZookeeperBackend::force_release(std::string_view key, std::string_view owner_id,
                                             std::string_view why, Deadline deadline) {
  if (owner_id.empty()) return false;
  if (auto ok = open(deadline); !ok) return ok.error();
  const std::string path = place_->path_of(key);
  for (bool in_doubt = false;;) {
    const auto children = children_of(path, deadline);
    if (!children) return children.error();
    const auto queue = queue_of(children.value());
    const std::size_t holders = count_holders(queue);
    const auto answers = ask(
        [&] {
          std::vector<Call> calls;
          for (std::size_t i = 0; i < holders; ++i) {
            calls.push_back(get(session_->handle(), path + '/' + queue[i].name, Watch::no));
          }
          return calls;
        },
        deadline);
    if (!answers) return answers.error();
    std::size_t found = 0;
    LockInfo::Holder holder;
    for (; found < holders; ++found) {
      const Reply& answer = *answers.value()[found];
      if (!answer.ok()) continue;
      holder = holder_of(queue[found], answer);
      if (holder.owner.id == owner_id) break;
    }
    if (found == holders) return in_doubt;  // what we did not hear of was our own doing
    if (!holder.foreign) {
      if (auto ok = leave_note(owner_id, why, deadline); !ok) return ok.error();
    }
    const Reply& seen = *answers.value()[found];
    const std::string node = path + '/' + queue[found].name;
    const Call gone = remove(session_->handle(), node, seen.stat.version);
    if (auto ok = session_->wait({gone}, answer_by(deadline), Cancel()); !ok) return ok.error();
    if (gone->ok()) return true;
    if (gone->code == ZNONODE) return in_doubt;
    in_doubt = in_doubt || gone->in_doubt();
    // Or it was written anew since we read it.
    if (!gone->in_doubt() && gone->code != ZBADVERSION) {
      return session_->refused(gone, "delete " + node);
    }
  }
}

}  // namespace

Result<std::string> place(const Target& target) {
  auto found = place_of(target);
  if (!found) return found.error();
  return std::move(found->name);
}

Result<std::unique_ptr<Backend>> open(const Target& target, Deadline, Cancel) {
  auto place = place_of(target);
  if (!place) return place.error();
  return std::make_unique<ZookeeperBackend>(std::move(*place));
}

}  // namespace dlock::zookeeper
