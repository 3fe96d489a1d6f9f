// A node has its text read, and written only if its version is still the one that was read; else
// all begins anew.  If the answer to a write is lost, it is repeated: if the first one was carried
// out, the version has changed, and the numbers of the first one are wasted.
//
// The nodes are persistent, and so are those above them that are missing.  A container, as the
// locks have, would be removed when it is empty; it is not while one of these is in it.
//
// The time of the servers is that of a write: a node of its own is written for it, together with
// the reading.
#include "backends/zookeeper/numbers.hpp"

#include <algorithm>
#include <array>

#include "backends/zookeeper/parents.hpp"
#include "util/text.hpp"

namespace dlock::zookeeper {
namespace {

std::string folder_of(const Place& place) { return place.base() + '/' + std::string(kNumbers); }

// The children of the folder.  An encoded name has no % that is not followed by two digits.
std::string counter_path(const Place& place, std::string_view name) {
  return folder_of(place) + '/' + node_of(name);
}
std::string workers_path(const Place& place) { return folder_of(place) + "/%workers"; }
std::string clock_path(const Place& place) { return folder_of(place) + "/%clock"; }

class Node {
 public:
  Node(Session& session, const Place& place, std::string path, Deadline deadline)
      : session_(session), place_(place), path_(std::move(path)), deadline_(deadline) {}

  /// None if there is none.
  Result<std::optional<std::string>> read();
  /// After read(): false if the node was changed, or made, since then.
  Result<bool> write(const std::string& text);
  /// The time of the servers at a moment after this was called, ms since 1970; and then read().
  Result<std::int64_t> time_and_read(std::optional<std::string>& text);

  bool in_time() const { return Clock::now() < deadline_; }
  Error too_many() const {
    return {Errc::unreachable,
            place_.shown + ": too many others take numbers from " + path_ + " at this moment"};
  }
  Error not_ours() const {
    return not_a_counter(place_.shown + ": node " + util::printable(path_));
  }

 private:
  bool auth() const { return !place_.auth.empty(); }
  Result<std::optional<std::string>> take(const Call& got);
  Result<void> make_folder() {
    return make_persistent(session_, place_, folder_of(place_), deadline_, Cancel());
  }

  Session& session_;
  const Place& place_;
  const std::string path_;
  const Deadline deadline_;
  std::optional<int> version_;  // none: there is no node
};

Result<std::optional<std::string>> Node::take(const Call& got) {
  version_.reset();
  if (got->code == ZNONODE) return std::optional<std::string>();
  if (!got->ok()) return session_.refused(got, "read " + path_);
  version_ = got->stat.version;
  return std::optional(got->text);
}

// Without the sync, a server that is behind the others would tell an old version.
Result<std::optional<std::string>> Node::read() {
  const auto answers = session_.persist(
      [&] {
        return std::array{sync(session_.handle(), path_), get(session_.handle(), path_, Watch::no)};
      },
      deadline_, Cancel());
  if (!answers) return answers.error();
  return take(answers.value()[1]);
}

Result<bool> Node::write(const std::string& text) {
  const auto answers = session_.persist(
      [&] {
        return std::array{
            version_ ? set(session_.handle(), path_, text, *version_)
                     : create(session_.handle(), path_, text, NodeKind::persistent, auth())};
      },
      deadline_, Cancel());
  if (!answers) return answers.error();
  const Call& written = answers.value()[0];
  switch (written->code) {
    case ZOK:
      return true;
    case ZBADVERSION:
    case ZNODEEXISTS:
      return false;
    case ZNONODE:
      if (version_) return false;
      if (auto ok = make_folder(); !ok) return ok.error();
      return false;
    default:
      return session_.refused(written, "write " + path_);
  }
}

// A session is answered in the order of its requests: so what is read is not older than the write.
Result<std::int64_t> Node::time_and_read(std::optional<std::string>& text) {
  const std::string clock = clock_path(place_);
  for (;;) {
    const auto answers = session_.persist(
        [&] {
          return std::array{set(session_.handle(), clock, "", -1),
                            get(session_.handle(), path_, Watch::no)};
        },
        deadline_, Cancel());
    if (!answers) return answers.error();
    const Call& ticked = answers.value()[0];
    if (ticked->ok()) {
      auto got = take(answers.value()[1]);
      if (!got) return got.error();
      text = std::move(*got);
      return ticked->stat.mtime;
    }
    if (ticked->code != ZNONODE) return session_.refused(ticked, "write " + clock);
    if (!in_time()) return too_many();
    if (auto ok = make_folder(); !ok) return ok.error();
    const auto made = session_.persist(
        [&] {
          return std::array{create(session_.handle(), clock, "", NodeKind::persistent, auth())};
        },
        deadline_, Cancel());
    if (!made) return made.error();
    const Call& created = made.value()[0];
    if (!created->ok() && created->code != ZNODEEXISTS && created->code != ZNONODE) {
      return session_.refused(created, "create " + clock);
    }
  }
}

}  // namespace

Result<std::uint64_t> take_numbers(Session& session, const Place& place, std::string_view name,
                                   std::uint64_t count, Deadline deadline) {
  Node node(session, place, counter_path(place, name), deadline);
  do {
    const auto text = node.read();
    if (!text) return text.error();
    const auto last = util::parse_int(text.value().value_or("0"), 0, INT64_MAX);
    if (!last) return node.not_ours();
    auto first = numbers_after(name, static_cast<std::uint64_t>(*last), count);
    if (!first) return first;
    const auto written = node.write(std::to_string(*first + count - 1));
    if (!written) return written.error();
    if (written.value()) return first;
  } while (node.in_time());
  return node.too_many();
}

Result<IdWindow> lease_window(Session& session, const Place& place, Millis length,
                              Deadline deadline) {
  Node node(session, place, workers_path(place), deadline);
  do {
    std::optional<std::string> text;
    const auto now = node.time_and_read(text);
    if (!now) return now.error();
    auto ends = parse_worker_ends(text.value_or(""));
    if (!ends) return node.not_ours();
    auto window = take_window(*ends, now.value(), length, place.shown);
    if (!window) return window;
    const auto written = node.write(format_worker_ends(*ends));
    if (!written) return written.error();
    if (written.value()) return window;
  } while (node.in_time());
  return node.too_many();
}

}  // namespace dlock::zookeeper
