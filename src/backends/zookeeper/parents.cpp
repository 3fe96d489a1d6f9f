#include "backends/zookeeper/parents.hpp"

#include <algorithm>
#include <vector>

namespace dlock::zookeeper {

Result<void> make_parents(Session& session, const Place& place, const std::string& lock,
                          Deadline deadline, Cancel cancel) {
  std::vector<std::string> paths;
  for (auto at = place.chroot.size() + 1; at <= lock.size(); ++at) {
    if (at == lock.size() || lock[at] == '/') paths.push_back(lock.substr(0, at));
  }
  for (const NodeKind kind : {NodeKind::container, NodeKind::persistent}) {
    const auto answers = session.persist(
        [&] {
          std::vector<Call> calls;
          for (const std::string& path : paths) {
            calls.push_back(create(session.handle(), path, "", kind, !place.auth.empty()));
          }
          return calls;
        },
        deadline, cancel);
    if (!answers) return answers.error();
    const auto& calls = answers.value();
    if (calls.front()->code == ZNONODE && !place.chroot.empty()) return no_chroot(place);
    // Those above may exist where we have no right to create them.
    const int last = calls.back()->code;
    if (last == ZOK || last == ZNODEEXISTS || last == ZNONODE) return {};
    const auto bad = std::find_if(calls.begin(), calls.end(), [](const Call& call) {
      return !call->ok() && call->code != ZNODEEXISTS;
    });
    if ((*bad)->code == ZUNIMPLEMENTED) continue;  // a server that has no containers (3.4)
    return session.refused(*bad, "create " + paths[static_cast<std::size_t>(bad - calls.begin())]);
  }
  return Error{Errc::unreachable, place.shown + ": cannot create " + lock};
}

}  // namespace dlock::zookeeper
