// Nodes.   <base>/%done/<key>~<period> for marks, <base>/%ids/<name> for numbers: persistent.  A
//          container, as the locks have, would be removed when it is empty.
// Time.    The time of the servers is that of a write: a node of its own, %clock, is written for
//          it.  That write is also what makes the answer to the next request, on the same
//          connection, as new as the servers have it.  A client that may not write takes the time
//          of its own machine, and a sync.  It can only show marks: prepare() refuses it.  If
//          %clock was deleted, the folder is written.
// Version. That of a node is not enough to delete only what was seen: a node that was deleted and
//          made anew has the version 0 again.  Example: two clients see that a mark is over, one
//          deletes it, the job runs and is remembered, and the other client deletes that.  So each
//          step that writes a record writes the folder, too, and a mark is deleted only if the
//          version of the folder is one that was read before the mark was.  Numbers are not
//          deleted, and two that take them from different counters must not be in each other's way:
//          they are written by the version of the node.
// Sample.  To list a large folder is work for the servers, so few runs do it, each with a larger
//          sample.
#include "backends/zookeeper/zookeeper_records.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <random>
#include <utility>

#include "backends/zookeeper/look.hpp"
#include "backends/zookeeper/parents.hpp"
#include "util/host.hpp"
#include "util/log.hpp"
#include "util/random_id.hpp"
#include "util/text.hpp"

namespace dlock::zookeeper {
namespace {

constexpr std::size_t kSample = 16;
// In a folder with more nodes, only one of kSeldom runs looks for marks, by chance, and at kSeldom
// times as many.
constexpr int kLarge = 1'000;
constexpr unsigned kSeldom = 16;
// No node has this version, so a request that names it changes nothing.  The right to write is
// checked before the version is.
constexpr int kNoVersion = INT32_MAX;
constexpr std::size_t kReadAtOnce = 200;
constexpr int kRemovals = 3;  // tries
// An encoded name has no % that is not followed by two digits.
constexpr std::string_view kWorkers = "%workers";  // the record of numbers without a key

std::string folder_of(const Place& place, RecordKind kind) {
  return place.base() + '/' + std::string(kind == RecordKind::mark ? kDone : kNumbers);
}
std::string clock_of(const Place& place, RecordKind kind) {
  return folder_of(place, kind) + "/%clock";
}

struct Versions {
  int folder = -1;
  int node = -1;
};
std::string format(const Versions& versions) {
  return std::to_string(versions.folder) + '.' + std::to_string(versions.node);
}
Versions parse(const std::string& text) {
  return {std::stoi(text), std::stoi(text.substr(text.find('.') + 1))};
}

class ZookeeperRecords final : public Records {
 public:
  explicit ZookeeperRecords(LookingSession& session) : looking_(session) {}

  std::string shown(const RecordName& name) const override {
    return place().shown + ": node " + util::printable(record_path(place(), name));
  }
  Result<RecordLook> read(const RecordName& name, Deadline deadline) override {
    return looking_.with(deadline, [&](Session& its) { return read(its, name, deadline); });
  }
  Result<RecordLook> list(std::string_view prefix, Deadline deadline) override {
    return looking_.with(deadline, [&](Session& its) { return list(its, prefix, deadline); });
  }
  Result<bool> write(const RecordName& name, const std::string& version, const std::string& text,
                     Deadline deadline) override {
    return looking_.with(deadline,
                         [&](Session& its) { return write(its, name, version, text, deadline); });
  }
  Result<std::size_t> remove(std::span<const StoredRecord> seen, Deadline deadline) override {
    return looking_.with(deadline, [&](Session& its) { return remove(its, seen, deadline); });
  }
  Result<void> prepare(std::string_view key, Deadline deadline) override {
    return looking_.with(deadline, [&](Session& its) { return prepare(its, key, deadline); });
  }
  Result<RecordLook> sample(std::string_view, Deadline deadline) override {
    return looking_.with(deadline, [&](Session& its) { return sample(its, deadline); });
  }

 private:
  const Place& place() const { return looking_.place(); }
  bool auth() const { return !place().auth.empty(); }
  template <class Ask>
  Result<std::invoke_result_t<Ask>> persist(Session& session, Deadline deadline, Ask ask) const {
    return session.persist(ask, place().answer_by(deadline), Cancel());
  }

  Result<RecordLook> read(Session& session, const RecordName& name, Deadline deadline) const;
  Result<RecordLook> list(Session& session, std::string_view prefix, Deadline deadline) const;
  Result<bool> write(Session& session, const RecordName& name, const std::string& version,
                     const std::string& text, Deadline deadline) const;
  Result<std::size_t> remove(Session& session, std::span<const StoredRecord> seen,
                             Deadline deadline) const;
  Result<void> prepare(Session& session, std::string_view key, Deadline deadline);
  Result<RecordLook> sample(Session& session, Deadline deadline) const;

  struct Looked {
    std::int64_t now = 0;
    int folder_version = 0;
    Call got;  // what was asked for, later than both
  };
  Result<std::optional<Looked>> look_without_clock(Session& session, const Call& folder,
                                                   const Call& got, Deadline deadline) const;
  template <class Ask>
  Result<Looked> look(Session& session, RecordKind kind, Deadline deadline, Ask ask) const;
  Result<void> read_marks(Session& session, const std::vector<std::string>& nodes,
                          int folder_version, Deadline deadline,
                          std::vector<StoredRecord>& out) const;

  LookingSession& looking_;
  int children_ = 0;  // of the folder of the marks, when prepare() saw it
};

StoredRecord record_in(RecordName name, const Reply& got, int folder_version) {
  return {.name = std::move(name),
          .text = got.text,
          .version = format({folder_version, got.stat.version}),
          .written = got.stat.mtime};
}

// Somebody has deleted %clock (to look makes no node), or this client may not write it.  `folder`:
// its Stat, read before `got` was.  None: a job has ended since then.
Result<std::optional<ZookeeperRecords::Looked>> ZookeeperRecords::look_without_clock(
    Session& session, const Call& folder, const Call& got, Deadline deadline) const {
  if (folder->ok()) {
    const Call written = set(session.handle(), marks_folder(place()), "", folder->stat.version);
    if (auto ok = session.wait({written}, place().answer_by(deadline), Cancel()); !ok) {
      return ok.error();
    }
    if (written->ok()) {
      return std::optional(Looked{written->stat.mtime, written->stat.version, got});
    }
    if (written->in_doubt() || written->code == ZBADVERSION) return std::optional<Looked>();
  }
  const auto now = static_cast<std::int64_t>(util::utc_now_ms());
  return std::optional(Looked{now, folder->stat.version, got});
}

// What `ask` asks for, as new as the servers have it.  Makes what is missing only for numbers.
template <class Ask>
Result<ZookeeperRecords::Looked> ZookeeperRecords::look(Session& session, RecordKind kind,
                                                        Deadline deadline, Ask ask) const {
  const std::string folder = folder_of(place(), kind);
  const std::string clock = clock_of(place(), kind);
  for (;;) {
    const auto answers = persist(session, deadline, [&] {
      return std::array{sync(session.handle(), folder), set(session.handle(), clock, ""),
                        exists(session.handle(), place().chroot_node(), Watch::no),
                        exists(session.handle(), folder, Watch::no), ask()};
    });
    if (!answers) return answers.error();
    const auto& [synced, ticked, root, found, got] = answers.value();
    if (root->code == ZNONODE) return no_chroot(place());
    if (ticked->ok()) return Looked{ticked->stat.mtime, found->stat.version, got};
    if (kind == RecordKind::mark && (ticked->code == ZNONODE || ticked->code == ZNOAUTH)) {
      auto looked = look_without_clock(session, found, got, deadline);
      if (!looked || looked.value())
        return looked ? Result<Looked>(*looked.value()) : looked.error();
      continue;
    }
    if (ticked->code != ZNONODE) return session.refused(ticked, "write " + clock);
    if (Clock::now() >= deadline) return session.silent();
    auto made = make_persistent(session, place(), clock, place().answer_by(deadline), Cancel());
    if (!made) return made.error();
  }
}

Result<RecordLook> ZookeeperRecords::read(Session& session, const RecordName& name,
                                          Deadline deadline) const {
  const std::string path = record_path(place(), name);
  const auto looked =
      look(session, name.kind, deadline, [&] { return get(session.handle(), path, Watch::no); });
  if (!looked) return looked.error();
  const auto& [now, folder_version, got] = looked.value();
  RecordLook out{.records = {}, .now = now};
  if (got->code == ZNONODE) return out;
  if (!got->ok()) return session.refused(got, "read " + path);
  out.records.push_back(record_in(name, *got, folder_version));
  return out;
}

// Those of `nodes` that are marks.
Result<void> ZookeeperRecords::read_marks(Session& session, const std::vector<std::string>& nodes,
                                          int folder_version, Deadline deadline,
                                          std::vector<StoredRecord>& out) const {
  const std::string folder = folder_of(place(), RecordKind::mark);
  const auto take = [&](std::size_t index, const Reply& got) {
    if (got.code == ZNOAUTH) {  // which must not hide the others
      const Error error =
          session.refused(std::make_shared<Reply>(got), "read " + folder + '/' + nodes[index]);
      util::log(util::Level::warning, error.message);
    }
    const auto name = mark_of(nodes[index]);
    if (!got.ok() || !name) return;
    out.push_back(record_in({RecordKind::mark, name->key, name->period}, got, folder_version));
  };
  for (std::size_t from = 0; from < nodes.size(); from += kReadAtOnce) {
    const auto begin = nodes.begin() + static_cast<std::ptrdiff_t>(from);
    const auto count = static_cast<std::ptrdiff_t>(std::min(kReadAtOnce, nodes.size() - from));
    const std::vector<std::string> some(begin, begin + count);
    auto ok = read_each(session, folder, some, place().answer_by(deadline), Cancel(),
                        [&](std::size_t index, const Reply& got) { take(from + index, got); });
    if (!ok) return ok;
  }
  return {};
}

Result<RecordLook> ZookeeperRecords::list(Session& session, std::string_view prefix,
                                          Deadline deadline) const {
  const std::string folder = folder_of(place(), RecordKind::mark);
  const auto looked = look(session, RecordKind::mark, deadline,
                           [&] { return get_children(session.handle(), folder, Watch::no); });
  if (!looked) return looked.error();
  const auto& [now, folder_version, listed] = looked.value();
  RecordLook out{.records = {}, .now = now};
  if (listed->code == ZNONODE) return out;
  if (!listed->ok()) return session.refused(listed, "list " + folder);
  std::vector<std::string> nodes = listed->names;
  std::erase_if(nodes, [&](const std::string& node) {
    const auto name = mark_of(node);
    return !name || !name->key.starts_with(prefix);
  });
  if (auto ok = read_marks(session, nodes, folder_version, deadline, out.records); !ok) {
    return ok.error();
  }
  return out;
}

// What has the version of a node still, or is not there still, is written; the folder in any case.
Result<bool> ZookeeperRecords::write(Session& session, const RecordName& name,
                                     const std::string& version, const std::string& text,
                                     Deadline deadline) const {
  const std::string path = record_path(place(), name);
  const std::vector<Step> steps{{Step::Kind::set, folder_of(place(), name.kind)},
                                version.empty()
                                    ? Step{Step::Kind::create, path, text}
                                    : Step{Step::Kind::set, path, text, parse(version).node}};
  const auto answers = persist(
      session, deadline, [&] { return std::array{all_or_none(session.handle(), steps, auth())}; });
  if (!answers) return answers.error();
  const Call& written = answers.value()[0];
  if (written->ok()) return true;
  for (const int code : {ZBADVERSION, ZNODEEXISTS, ZNONODE}) {
    if (written->failed_at(1, code)) return false;
  }
  if (!written->failed_at(0, ZNONODE)) return session.refused(written, "write " + path);
  auto made = make_persistent(session, place(), clock_of(place(), name.kind),
                              place().answer_by(deadline), Cancel());
  return made ? Result<bool>(false) : made.error();
}

// Where a job has ended and changed the folder, the mark is looked at once more.
Result<std::size_t> ZookeeperRecords::remove(Session& session, std::span<const StoredRecord> seen,
                                             Deadline deadline) const {
  std::vector<StoredRecord> rest(seen.begin(), seen.end());
  std::size_t count = 0;
  for (int tries = 0; tries < kRemovals && !rest.empty(); ++tries) {
    std::vector<Call> calls;
    for (const StoredRecord& record : rest) {
      const auto [folder, node] = parse(record.version);
      const std::vector<Step> steps{
          {Step::Kind::check, marks_folder(place()), "", folder},
          {Step::Kind::remove, record_path(place(), record.name), "", node}};
      calls.push_back(all_or_none(session.handle(), steps, false));
    }
    if (auto ok = session.wait(calls, place().answer_by(deadline), Cancel()); !ok) {
      return ok.error();
    }
    std::vector<StoredRecord> again;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const Call& call = calls[i];
      if (call->ok()) ++count;
      if (call->failed_at(0, ZBADVERSION)) {
        const auto now = read(session, rest[i].name, deadline);
        if (!now) return now.error();
        for (const StoredRecord& record : now.value().records) {
          if (record.text == rest[i].text) again.push_back(record);
        }
      } else if (call->code != ZOK && !call->in_doubt() && call->code != ZBADVERSION &&
                 call->code != ZNONODE) {
        return session.refused(call, "delete " + record_path(place(), rest[i].name));
      }
    }
    rest = std::move(again);
  }
  return count;
}

// Rights are checked before it is found that there is such a node, or none, or that its version is
// another one.
Result<void> ZookeeperRecords::prepare(Session& session, std::string_view key, Deadline deadline) {
  const std::string folder = folder_of(place(), RecordKind::mark);
  const std::string clock = clock_of(place(), RecordKind::mark);
  const std::string lock = place().path_of(key);
  for (;;) {
    const auto answers = persist(session, deadline, [&] {
      return std::array{create(session.handle(), clock, "", NodeKind::persistent, auth()),
                        set(session.handle(), clock, ""),
                        set(session.handle(), folder, "", kNoVersion),
                        zookeeper::remove(session.handle(), lock + "/%none", kNoVersion),
                        exists(session.handle(), folder, Watch::no)};
    });
    if (!answers) return answers.error();
    const auto& [created, ticked, written, removed, found] = answers.value();
    if (created->code == ZNONODE || ticked->code == ZNONODE || written->code == ZNONODE) {
      if (Clock::now() >= deadline) return session.silent();
      auto made = make_persistent(session, place(), clock, place().answer_by(deadline), Cancel());
      if (!made) return made.error();
      continue;
    }
    if (!created->ok() && created->code != ZNODEEXISTS) {
      return session.refused(created, "create nodes in " + folder);
    }
    if (!ticked->ok()) return session.refused(ticked, "write " + clock);
    if (written->code != ZBADVERSION) return session.refused(written, "write " + folder);
    if (removed->code != ZNONODE && removed->code != ZBADVERSION) {
      return session.refused(removed, "delete nodes in " + lock);
    }
    if (found->ok()) children_ = found->stat.numChildren;
    return {};
  }
}

Result<RecordLook> ZookeeperRecords::sample(Session& session, Deadline deadline) const {
  const std::string folder = folder_of(place(), RecordKind::mark);
  std::minstd_rand random(util::random_seed());
  const unsigned share = children_ > kLarge ? kSeldom : 1;
  if (children_ < 2 || random() % share != 0) return RecordLook{};  // one is %clock
  const auto looked = look(session, RecordKind::mark, deadline,
                           [&] { return get_children(session.handle(), folder, Watch::no); });
  if (!looked) return looked.error();
  std::vector<std::string> some;
  const std::vector<std::string>& all = looked.value().got->names;
  std::sample(all.begin(), all.end(), std::back_inserter(some), kSample * share, random);
  RecordLook out{.records = {}, .now = looked.value().now};
  const auto ok = read_marks(session, some, looked.value().folder_version, deadline, out.records);
  if (!ok) return ok.error();
  return out;
}

}  // namespace

std::unique_ptr<Records> make_records(LookingSession& session) {
  return std::make_unique<ZookeeperRecords>(session);
}

std::string record_path(const Place& place, const RecordName& name) {
  const std::string node = name.kind == RecordKind::mark ? mark_node({name.key, name.period})
                           : name.key.empty()            ? std::string(kWorkers)
                                                         : node_of(name.key);
  return folder_of(place, name.kind) + '/' + node;
}

std::string marks_folder(const Place& place) { return folder_of(place, RecordKind::mark); }
std::string marks_clock(const Place& place) { return clock_of(place, RecordKind::mark); }

}  // namespace dlock::zookeeper
