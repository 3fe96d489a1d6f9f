// Marks.   <base>/%done/<key>~<period>: a persistent node with a record of the job.  The record
// says
//          how long the mark lasts; that time begins with the last write of the node.
// Step.    The mark is written and the node in the queue is deleted in one request, which does
//          nothing if that node is gone.  So only the holder of the lock writes a mark, however
//          late its request arrives.  The mark comes first: a server that carries out one after the
//          other wakes the next holder when the mark can be read.  If a reply is lost, the request
//          is repeated, and if the node in the queue is gone then, the mark tells whether the first
//          request has deleted it.
// Time.    The time of the servers is that of a write: a node of its own, %clock, is written for
//          it.  That write is also what makes the answer to the next request, on the same
//          connection, as new as the servers have it.  A client that may not write takes the time
//          of its own machine, and a sync.  It can only show marks: prepare_marks() refuses a
//          client that cannot write %clock.  If %clock was deleted, the folder is written: looking
//          creates no node.
// Sweep.   Before a job runs, not after it: its release, and the next holder, do not wait for that.
//          A sample of the marks is looked at, and those whose time is over are deleted.  A run
//          adds one mark at most and looks at 16 on average, so in the long run not many more than
//          one of 16 marks is over.  To list a large folder is work for the servers, so few runs
//          do it, each with a larger sample.
// Version. That of a mark is not enough to delete only what was seen: a mark that was deleted and
//          made anew has the version 0 again.  Example: two clients see that a mark is over, one
//          deletes it, the job runs and is remembered, and the other client deletes that.  So each
//          step that writes a mark writes the folder, too, and a mark is deleted only if the
//          version of the folder is one that was read before the mark was.  Only the end of a job
//          changes that version, and not its beginning: many jobs may begin at the same moment of
//          each day, and all their sweeps would fail.
#include "backends/zookeeper/once.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <random>
#include <utility>

#include "backends/zookeeper/look.hpp"
#include "backends/zookeeper/parents.hpp"
#include "core/patience.hpp"
#include "util/log.hpp"
#include "util/random_id.hpp"

namespace dlock::zookeeper {
namespace {

constexpr std::size_t kSample = 16;
// In a folder with more nodes, only one of kSeldom runs looks for marks that are over, by chance,
// and at kSeldom times as many.
constexpr int kLarge = 1'000;
constexpr unsigned kSeldom = 16;
// The job waits for the sweep, and the lease runs: of the time that is left, the sweep may take one
// part in kSweepShare.
constexpr Millis kSweep{1'000};
constexpr int kSweepShare = 8;
// No node has this version, so a request that names it changes nothing.  The right to write is
// checked before the version is.
constexpr int kNoVersion = INT32_MAX;
constexpr std::size_t kMarksAtOnce = 200;

std::string marks_folder(const Place& place) { return place.base() + '/' + std::string(kDone); }
std::string mark_path(const Place& place, const MarkName& name) {
  return marks_folder(place) + '/' + mark_node(name);
}

struct Looked {
  Call ticked;  // a write of %clock
  Call folder;  // its Stat
  Call got;     // what was asked for, later than both
};

// What `ask` asks for, as new as the servers have it.
template <class Ask>
Result<Looked> look(Session& session, const Place& place, Deadline deadline, Ask ask) {
  const std::string folder = marks_folder(place);
  const auto answers = session.persist(
      [&] {
        return std::array{sync(session.handle(), folder),
                          set(session.handle(), marks_clock(place), ""),
                          exists(session.handle(), place.chroot_node(), Watch::no),
                          exists(session.handle(), folder, Watch::no), ask()};
      },
      place.answer_by(deadline), Cancel());
  if (!answers) return answers.error();
  const auto& [synced, ticked, root, found, got] = answers.value();
  if (root->code == ZNONODE) return no_chroot(place);
  return Looked{ticked, found, got};
}

// That of the servers, ms since 1970.  `ticked`: the answer to a write of %clock.
Result<std::int64_t> time_by(Session& session, const Place& place, const Call& ticked,
                             Deadline deadline) {
  Call written = ticked;
  if (ticked->code == ZNONODE) {
    const auto answers =
        session.persist([&] { return std::array{set(session.handle(), marks_folder(place), "")}; },
                        place.answer_by(deadline), Cancel());
    if (!answers) return answers.error();
    written = answers.value()[0];
  }
  if (written->ok()) return std::max<std::int64_t>(written->stat.mtime, 0);
  if (written->code == ZNONODE) return INT64_MAX;  // the marks were deleted meanwhile: all are over
  if (written->code != ZNOAUTH) return session.refused(written, "write " + marks_folder(place));
  using std::chrono::system_clock;
  const auto local = std::chrono::duration_cast<Millis>(system_clock::now().time_since_epoch());
  return std::max<std::int64_t>(local.count(), 0);
}

struct Seen {
  MarkRecord record;
  Millis age;

  bool is_over() const { return age >= record.remember; }
};

// None if that is no mark.
std::optional<Seen> seen_in(const Reply& got, std::int64_t now) {
  auto record = parse_mark(got.text);
  if (!record) return std::nullopt;
  return Seen{std::move(*record), Millis{now - std::clamp<std::int64_t>(got.stat.mtime, 0, now)}};
}

std::optional<Mark> valid_mark(const MarkName& name, const Reply& got, std::int64_t now) {
  auto seen = seen_in(got, now);
  if (!seen || seen->is_over()) return std::nullopt;
  MarkRecord& record = seen->record;
  return Mark{.name = name,
              .owner = std::move(record.owner),
              .fence = record.fence,
              .done_at = std::move(record.done_at),
              .age = seen->age,
              .left = record.remember - seen->age};
}

// Deletes what `seen` is the answer to get() of, if no mark was written since the folder had
// `version`.
Call forget_seen(Session& session, const Place& place, int version, const std::string& path,
                 const Reply& seen) {
  return all_or_none(session.handle(),
                     {{Step::Kind::check, marks_folder(place), "", version},
                      {Step::Kind::remove, path, "", seen.stat.version}},
                     false);
}

// Some of the marks, chosen at random; none where this run need not look.  `children`: of the
// folder.
std::vector<std::string> sample_of_marks(Session& session, const Place& place, int children,
                                         Deadline deadline) {
  std::minstd_rand random(util::random_seed());
  const unsigned share = children > kLarge ? kSeldom : 1;
  if (children < 2 || random() % share != 0) return {};  // one is %clock
  const auto answers = session.persist(
      [&] { return std::array{get_children(session.handle(), marks_folder(place), Watch::no)}; },
      deadline, Cancel());
  if (!answers || !answers.value()[0]->ok()) return {};
  std::vector<std::string> nodes = answers.value()[0]->names;
  std::erase_if(nodes, [](const std::string& node) { return !mark_of(node); });
  std::vector<std::string> sample;
  std::sample(nodes.begin(), nodes.end(), std::back_inserter(sample), kSample * share, random);
  return sample;
}

// `now`: of the servers, or a little earlier.  If a job has ended meanwhile, it is tried once more;
// any other failure is left to the next sweep.
void sweep(Session& session, const Place& place, int children, std::int64_t now,
           Deadline deadline) {
  const Deadline begin = Clock::now();
  const Millis share = remaining(deadline, begin) / kSweepShare;
  deadline = after(begin, std::min(share, kSweep));
  const auto sample = sample_of_marks(session, place, children, deadline);
  const std::string folder = marks_folder(place);
  bool again = !sample.empty();
  for (int tries = 0; again && tries < 2; ++tries) {
    const auto answers = session.persist(
        [&] {
          std::vector<Call> calls{exists(session.handle(), folder, Watch::no)};
          for (const std::string& node : sample) {
            calls.push_back(get(session.handle(), folder + '/' + node, Watch::no));
          }
          return calls;
        },
        deadline, Cancel());
    if (!answers || !answers.value()[0]->ok()) return;
    const int version = answers.value()[0]->stat.version;
    std::vector<Call> gone;
    for (std::size_t i = 0; i < sample.size(); ++i) {
      const Reply& got = *answers.value()[i + 1];
      const auto seen = got.ok() ? seen_in(got, now) : std::nullopt;
      if (!seen || !seen->is_over()) continue;
      gone.push_back(forget_seen(session, place, version, folder + '/' + sample[i], got));
    }
    if (!session.wait(gone, deadline, Cancel())) return;
    again = std::any_of(gone.begin(), gone.end(),
                        [](const Call& call) { return call->code == ZBADVERSION; });
  }
}

}  // namespace

// No mark is called like that.
std::string marks_clock(const Place& place) { return marks_folder(place) + "/%clock"; }

Result<std::optional<Mark>> find_mark(Session& session, const Place& place, const MarkName& name,
                                      Deadline deadline) {
  const std::string path = mark_path(place, name);
  const auto looked =
      look(session, place, deadline, [&] { return get(session.handle(), path, Watch::no); });
  if (!looked) return looked.error();
  const auto& [ticked, folder, got] = looked.value();
  if (got->code == ZNONODE) return std::optional<Mark>();
  if (!got->ok()) return session.refused(got, "read " + path);
  const auto now = time_by(session, place, ticked, deadline);
  if (!now) return now.error();
  return valid_mark(name, *got, now.value());
}

// Rights are checked before it is found that there is such a node, or none, or that its version is
// another one.
Result<void> prepare_marks(Session& session, const Place& place, std::string_view key,
                           Deadline deadline) {
  const std::string folder = marks_folder(place);
  const std::string clock = marks_clock(place);
  const std::string lock = place.path_of(key);
  for (;;) {
    const auto answers = session.persist(
        [&] {
          return std::array{
              create(session.handle(), clock, "", NodeKind::persistent, !place.auth.empty()),
              set(session.handle(), clock, ""), set(session.handle(), folder, "", kNoVersion),
              remove(session.handle(), lock + "/%none", kNoVersion),
              exists(session.handle(), folder, Watch::no)};
        },
        place.answer_by(deadline), Cancel());
    if (!answers) return answers.error();
    const auto& [created, ticked, written, removed, found] = answers.value();
    if (created->code == ZNONODE || ticked->code == ZNONODE || written->code == ZNONODE) {
      if (Clock::now() >= deadline) return session.silent();
      auto made = make_persistent(session, place, clock, place.answer_by(deadline), Cancel());
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
    if (found->ok()) {
      sweep(session, place, found->stat.numChildren, ticked->stat.mtime, deadline);
    }
    return {};
  }
}

Result<std::vector<Mark>> list_marks(Session& session, const Place& place, std::string_view prefix,
                                     Deadline deadline) {
  const std::string folder = marks_folder(place);
  const auto looked = look(session, place, deadline,
                           [&] { return get_children(session.handle(), folder, Watch::no); });
  if (!looked) return looked.error();
  const auto& [ticked, found, listed] = looked.value();
  if (listed->code == ZNONODE) return std::vector<Mark>();
  if (!listed->ok()) return session.refused(listed, "list " + folder);
  std::vector<MarkName> names;
  for (const std::string& node : listed->names) {
    auto name = mark_of(node);
    if (name && name->key.starts_with(prefix)) names.push_back(std::move(*name));
  }
  std::sort(names.begin(), names.end());
  std::vector<Mark> marks;
  if (names.empty()) return marks;
  const auto now = time_by(session, place, ticked, deadline);
  if (!now) return now.error();
  for (std::size_t from = 0; from < names.size(); from += kMarksAtOnce) {
    const std::size_t to = std::min(from + kMarksAtOnce, names.size());
    std::vector<std::string> nodes;
    for (std::size_t i = from; i < to; ++i) nodes.push_back(mark_node(names[i]));
    const auto take = [&](std::size_t index, const Reply& got) {
      if (got.code == ZNOAUTH) {  // which must not hide the others
        util::log(
            util::Level::warning,
            session.refused(std::make_shared<Reply>(got), "read " + folder + '/' + nodes[index])
                .message);
      }
      auto mark = got.ok() ? valid_mark(names[from + index], got, now.value()) : std::nullopt;
      if (mark) marks.push_back(std::move(*mark));
    };
    if (auto ok = read_each(session, folder, nodes, place.answer_by(deadline), Cancel(), take);
        !ok) {
      return ok.error();
    }
  }
  return marks;
}

// What was seen first is forgotten, and no mark that a job leaves meanwhile.
Result<bool> forget_mark(Session& session, const Place& place, const MarkName& name,
                         Deadline deadline) {
  const std::string path = mark_path(place, name);
  std::optional<std::int64_t> first;  // the write that made it
  for (bool in_doubt = false;;) {
    const auto looked =
        look(session, place, deadline, [&] { return get(session.handle(), path, Watch::no); });
    if (!looked) return looked.error();
    const auto& [ticked, folder, got] = looked.value();
    if (got->code == ZNONODE) return in_doubt;  // what we did not hear of was our own doing
    if (!got->ok()) return session.refused(got, "read " + path);
    if (first && got->stat.mzxid != *first) return true;
    if (!first) {
      const auto now = time_by(session, place, ticked, deadline);
      if (!now) return now.error();
      if (!valid_mark(name, *got, now.value())) return false;
    }
    first = got->stat.mzxid;
    const Call gone = forget_seen(session, place, folder->stat.version, path, *got);
    if (auto ok = session.wait({gone}, place.answer_by(deadline), Cancel()); !ok) {
      return ok.error();
    }
    if (gone->ok()) return true;
    in_doubt = in_doubt || gone->in_doubt();
    if (!gone->in_doubt() && gone->code != ZBADVERSION && gone->code != ZNONODE) {
      return session.refused(gone, "delete " + path);
    }
    if (!pause_briefly(deadline, Cancel())) return session.silent();
  }
}

Completing::Completing(std::shared_ptr<const Place> place, const MarkName& name, std::string record,
                       std::string queued)
    : place_(std::move(place)),
      path_(mark_path(*place_, name)),
      record_(std::move(record)),
      queued_(std::move(queued)) {}

std::vector<Step> Completing::steps() const {
  return {{Step::Kind::check, queued_},
          {Step::Kind::set, marks_folder(*place_)},
          {exists_ ? Step::Kind::set : Step::Kind::create, path_, record_},
          {Step::Kind::remove, queued_}};
}

Call Completing::ask(Session& session) const {
  return all_or_none(session.handle(), steps(), !place_->auth.empty());
}

bool Completing::lock_is_gone(const Reply& call) { return call.failed_at(0, ZNONODE); }

Result<void> Completing::adapt(Session& session, const Call& call, Deadline deadline,
                               Cancel cancel) {
  if (call->failed_at(1, ZNONODE)) {
    return make_persistent(session, *place_, marks_clock(*place_), deadline, cancel);
  }
  if (call->failed_at(2, exists_ ? ZNONODE : ZNODEEXISTS)) {
    exists_ = !exists_;
    return {};
  }
  std::string doing = "write " + path_;
  const std::vector<Step> steps = this->steps();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (call->failed_at(i, call->code)) doing = shown(steps[i]);
  }
  return session.refused(call, doing);
}

// After the sync, which the leader answers: a server may be behind the others, and may make a new
// session without asking them (localSessionsEnabled).
Result<bool> Completing::is_done_by(std::string_view owner_id, Millis ttl, Deadline deadline,
                                    Cancel cancel) const {
  Session session(place_, ttl);
  if (auto ok = session.open(deadline, cancel); !ok) return ok.error();
  const auto answers = session.persist(
      [&] {
        return std::array{sync(session.handle(), path_), get(session.handle(), path_, Watch::no)};
      },
      deadline, cancel);
  if (!answers) return answers.error();
  const Call& got = answers.value()[1];
  session.close();
  if (!got->ok() && got->code != ZNONODE) return session.refused(got, "read " + path_);
  const auto record = got->ok() ? parse_mark(got->text) : std::nullopt;
  return record && record->owner.id == owner_id;
}

}  // namespace dlock::zookeeper
