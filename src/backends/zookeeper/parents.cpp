#include "backends/zookeeper/parents.hpp"

#include <algorithm>
#include <vector>

namespace dlock::zookeeper {
namespace {

// False: the server has no nodes of this kind.
Result<bool> make(Session& session, const Place& place, const std::string& path, NodeKind kind,
                  Deadline deadline, Cancel cancel) {
  std::vector<std::string> paths;
  for (auto at = place.chroot.size() + 1; at <= path.size(); ++at) {
    if (at == path.size() || path[at] == '/') paths.push_back(path.substr(0, at));
  }
  const auto answers = session.persist(
      [&] {
        std::vector<Call> calls;
        for (const std::string& each : paths) {
          calls.push_back(create(session.handle(), each, "", kind, !place.auth.empty()));
        }
        return calls;
      },
      deadline, cancel);
  if (!answers) return answers.error();
  const auto& calls = answers.value();
  if (calls.front()->code == ZNONODE && !place.chroot.empty()) return no_chroot(place);
  // Those above may exist where we have no right to create them.  Behind one that is missing, all
  // are: if it was deleted meanwhile, which shows by the one above it, the caller tries again.
  const auto last = std::find_if(calls.rbegin(), calls.rend(),
                                 [](const Call& call) { return call->code != ZNONODE; });
  if (last == calls.rend() || (*last)->ok() || (*last)->code == ZNODEEXISTS) return true;
  if ((*last)->code == ZUNIMPLEMENTED) return false;
  const auto index = static_cast<std::size_t>(calls.rend() - last) - 1;
  return session.refused(*last, "create " + paths[index]);
}

}  // namespace

Result<void> make_parents(Session& session, const Place& place, const std::string& lock,
                          Deadline deadline, Cancel cancel) {
  const auto made = make(session, place, lock, NodeKind::container, deadline, cancel);
  if (!made) return made.error();
  if (made.value()) return {};
  return make_persistent(session, place, lock, deadline, cancel);  // a server of 3.4
}

Result<void> make_persistent(Session& session, const Place& place, const std::string& path,
                             Deadline deadline, Cancel cancel) {
  const auto made = make(session, place, path, NodeKind::persistent, deadline, cancel);
  if (!made) return made.error();
  if (made.value()) return {};
  return Error{Errc::unreachable, place.shown + ": cannot create " + path};
}

}  // namespace dlock::zookeeper
