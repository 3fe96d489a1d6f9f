// Each lock that is held or waited for has a session of its own, with its ttl for a timeout.  Those
// who look share one, which is opened when it is first needed.
#include "backends/zookeeper/zookeeper_backend.hpp"

#include <algorithm>
#include <array>

#include "backends/zookeeper/acquire.hpp"
#include "backends/zookeeper/look.hpp"
#include "backends/zookeeper/looking_session.hpp"
#include "backends/zookeeper/zookeeper_records.hpp"
#include "util/log.hpp"

namespace dlock::zookeeper {
namespace {

constexpr std::size_t kKeysAtOnce = 200;
constexpr std::size_t kLongestReason = 4'000;

class ZookeeperBackend final : public Backend {
 public:
  explicit ZookeeperBackend(Place place)
      : place_(std::make_shared<const Place>(std::move(place))),
        looking_(place_),
        records_(make_records(looking_)) {}

  std::string location() const override { return place_->location; }

  Result<std::unique_ptr<Lease>> acquire(const Request& request, const Wait& wait) override {
    if (auto ok = check_key(request.key); !ok) return ok.error();
    return zookeeper::acquire(place_, request, wait);
  }

  Result<std::vector<LockInfo>> list(std::string_view prefix, Deadline deadline) override {
    return looking_.with(deadline, [&](Session& its) { return list(its, prefix, deadline); });
  }
  Result<LockInfo> inspect(std::string_view key, Deadline deadline) override {
    return looking_.with(deadline, [&](Session& its) { return inspect(its, key, deadline); });
  }
  Result<bool> force_release(std::string_view key, std::string_view owner_id, const Reason& reason,
                             Deadline deadline) override {
    if (owner_id.empty()) return false;
    return looking_.with(deadline, [&](Session& its) {
      return force_release(its, key, owner_id, reason, deadline);
    });
  }
  Records* records() override { return records_.get(); }

 private:
  // Without a root and a chroot, one key would be the servers' own node.
  Result<void> check_key(std::string_view key) const {
    if (place_->path_of(key) != "/zookeeper") return {};
    return Error{Errc::invalid, "key \"zookeeper\" belongs to the servers; choose a --prefix"};
  }
  Deadline answer_by(Deadline deadline) const { return place_->answer_by(deadline); }
  template <class Ask>
  Result<std::invoke_result_t<Ask>> persist(Session& session, Deadline deadline, Ask ask) const {
    return session.persist(ask, answer_by(deadline), Cancel());
  }
  Result<std::vector<LockInfo>> list(Session& session, std::string_view prefix, Deadline deadline);
  Result<LockInfo> inspect(Session& session, std::string_view key, Deadline deadline);
  Result<bool> force_release(Session& session, std::string_view key, std::string_view owner_id,
                             const Reason& reason, Deadline deadline);
  Result<std::vector<std::string>> children_of(Session& session, const std::string& path,
                                               Deadline deadline);
  Result<void> leave_note(Session& session, std::string_view owner_id, std::string_view why,
                          Deadline deadline);

  const std::shared_ptr<const Place> place_;
  LookingSession looking_;
  const std::unique_ptr<Records> records_;
};

// None if there is no such node.
Result<std::vector<std::string>> ZookeeperBackend::children_of(Session& session,
                                                               const std::string& path,
                                                               Deadline deadline) {
  const auto or_root = [](const std::string& node) { return node.empty() ? "/" : node; };
  const std::string there = or_root(path);
  const std::string chroot = or_root(place_->chroot);
  const auto answers = persist(session, deadline, [&] {
    return std::array{get_children(session.handle(), there, Watch::no),
                      exists(session.handle(), chroot, Watch::no)};
  });
  if (!answers) return answers.error();
  const Call& listed = answers.value()[0];
  if (listed->code == ZNONODE) {
    if (answers.value()[1]->code == ZNONODE) return no_chroot(*place_);
    return std::vector<std::string>();
  }
  if (!listed->ok()) return session.refused(listed, "list " + there);
  return listed->names;
}

Result<LockInfo> ZookeeperBackend::inspect(Session& session, std::string_view key,
                                           Deadline deadline) {
  const std::string path = place_->path_of(key);
  const auto children = children_of(session, path, deadline);
  if (!children) return children.error();
  return look_at(session, path, key, children.value(), true, answer_by(deadline), Cancel());
}

Result<std::vector<LockInfo>> ZookeeperBackend::list(Session& session, std::string_view prefix,
                                                     Deadline deadline) {
  const auto nodes = children_of(session, place_->base(), deadline);
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
    const auto answers = persist(session, deadline, [&] {
      std::vector<Call> calls;
      for (std::size_t i = from; i < to; ++i) {
        calls.push_back(get_children(session.handle(), place_->path_of(keys[i]), Watch::no));
      }
      return calls;
    });
    if (!answers) return answers.error();
    for (std::size_t i = from; i < to; ++i) {
      const Call& listed = answers.value()[i - from];
      if (listed->code == ZNOAUTH) {  // which must not hide the others
        util::log(util::Level::warning,
                  session.refused(listed, "list " + place_->path_of(keys[i])).message);
      }
      if (!listed->ok() || queue_of(listed->names).empty()) continue;
      auto info = look_at(session, place_->path_of(keys[i]), keys[i], listed->names, true,
                          answer_by(deadline), Cancel());
      if (!info) return info.error();
      if (!info->holders.empty() || !info->waiters->empty()) locks.push_back(std::move(*info));
    }
  }
  return locks;
}

// The note is ephemeral: the servers delete it some seconds after this process has ended.
Result<void> ZookeeperBackend::leave_note(Session& session, std::string_view owner_id,
                                          std::string_view why, Deadline deadline) {
  const std::string folder = place_->base() + '/' + std::string(kBroken);
  const std::string path = folder + '/' + node_of(owner_id);
  const std::string text(why.substr(0, kLongestReason));
  const bool auth = !place_->auth.empty();
  looking_.leave_open();
  for (const NodeKind kind : {NodeKind::container, NodeKind::persistent}) {
    for (int tries = 0; tries < 2; ++tries) {
      const auto noted = persist(session, deadline, [&] {
        return std::array{create(session.handle(), path, text, NodeKind::ephemeral, auth)};
      });
      if (!noted) return noted.error();
      if (noted.value()[0]->code != ZNONODE) return {};
      const auto made = persist(session, deadline, [&] {
        return std::array{create(session.handle(), folder, "", kind, auth)};
      });
      if (!made) return made.error();
      if (made.value()[0]->code == ZUNIMPLEMENTED) break;
    }
  }
  return {};
}

Result<bool> ZookeeperBackend::force_release(Session& session, std::string_view key,
                                             std::string_view owner_id, const Reason& reason,
                                             Deadline deadline) {
  const std::string path = place_->path_of(key);
  for (bool in_doubt = false;;) {
    const auto children = children_of(session, path, deadline);
    if (!children) return children.error();
    const auto queue = queue_of(children.value());
    const std::size_t holders = count_holders(queue);
    const auto answers = persist(session, deadline, [&] {
      std::vector<Call> calls;
      for (std::size_t i = 0; i < holders; ++i) {
        calls.push_back(get(session.handle(), path + '/' + queue[i].name, Watch::no));
      }
      return calls;
    });
    if (!answers) return answers.error();
    std::size_t found = 0;
    LockInfo::Holder holder;
    for (; found < holders; ++found) {
      const Reply& answer = *answers.value()[found];
      if (!answer.ok()) continue;
      holder = holder_of(queue[found], answer);
      if (holder.owner.id == owner_id) break;
    }
    // If an answer was lost, our own request has deleted the node.
    if (found == holders) return in_doubt;
    if (!holder.foreign) {
      if (auto ok = leave_note(session, owner_id, format_reason(reason), deadline); !ok)
        return ok.error();
    }
    const Reply& seen = *answers.value()[found];
    const std::string node = path + '/' + queue[found].name;
    const Call gone = remove(session.handle(), node, seen.stat.version);
    if (auto ok = session.wait({gone}, answer_by(deadline), Cancel()); !ok) return ok.error();
    if (gone->ok()) return true;
    if (gone->code == ZNONODE) return in_doubt;
    in_doubt = in_doubt || gone->in_doubt();
    // Or it was written anew since we read it.
    if (!gone->in_doubt() && gone->code != ZBADVERSION) {
      return session.refused(gone, "delete " + node);
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
