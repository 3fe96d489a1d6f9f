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
//          of its own machine, and a sync.  That is good enough: it can only show marks, since a
//          client that cannot write there cannot run the job.  Looking creates no node.
// Sweep.   Before a job runs, not after it: its release, and the next holder, do not wait for that.
//          A sample of the marks is looked at, and those whose time is over are deleted.  A run
//          adds one mark at most, so in the long run not many more than one of 16 marks is over.
// Version. That of a mark is not enough to delete only what was seen: a mark that was deleted and
//          made anew has the version 0 again.  Example: two clients see that a mark is over, one
//          deletes it, the job runs and is remembered, and the other client deletes that.  So each
//          step that writes a mark writes the folder, too, and a mark is deleted only if the
//          version of the folder is one that was read before the mark was.
#include "backends/zookeeper/once.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <random>
#include <utility>

#include "backends/zookeeper/look.hpp"
#include "backends/zookeeper/parents.hpp"
#include "util/log.hpp"

namespace dlock::zookeeper {
namespace {

constexpr std::size_t kSample = 16;
constexpr Millis kSweep{1'000};  // the job waits for it
constexpr std::size_t kMarksAtOnce = 200;

std::string marks_folder(const Place& place) { return place.base() + '/' + std::string(kDone); }
// No mark is called like that.
std::string marks_clock(const Place& place) { return marks_folder(place) + "/%clock"; }
std::string mark_path(const Place& place, const MarkName& name) {
  return marks_folder(place) + '/' + mark_node(name);
}

// `ticked`: the answer to a write.
std::int64_t time_by(const Call& ticked) {
  using std::chrono::system_clock;
  const auto local = std::chrono::duration_cast<Millis>(system_clock::now().time_since_epoch());
  return std::max<std::int64_t>(ticked->ok() ? ticked->stat.mtime : local.count(), 0);
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

// `version`, `now`: of the folder and of the servers, before the marks are read.  A failure is left
// to the next sweep.
void sweep(Session& session, const Place& place, std::vector<std::string> nodes, int version,
           std::int64_t now, Deadline deadline) {
  deadline = std::min(place.answer_by(deadline), after(Clock::now(), kSweep));
  std::erase_if(nodes, [](const std::string& node) { return !mark_of(node); });
  std::vector<std::string> sample;
  std::sample(nodes.begin(), nodes.end(), std::back_inserter(sample), kSample,
              std::minstd_rand(std::random_device()()));
  const std::string folder = marks_folder(place);
  std::vector<Call> gone;
  const auto forget_if_over = [&](std::size_t index, const Reply& got) {
    const auto seen = got.ok() ? seen_in(got, now) : std::nullopt;
    if (!seen || !seen->is_over()) return;
    gone.push_back(forget_seen(session, place, version, folder + '/' + sample[index], got));
  };
  if (read_each(session, folder, sample, deadline, Cancel(), forget_if_over)) {
    (void)session.wait(gone, deadline, Cancel());
  }
}

}  // namespace

Result<std::optional<Mark>> find_mark(Session& session, const Place& place, const MarkName& name,
                                      Deadline deadline) {
  const std::string path = mark_path(place, name);
  const auto answers = session.persist(
      [&] {
        return std::array{sync(session.handle(), path),
                          set(session.handle(), marks_clock(place), ""),
                          get(session.handle(), path, Watch::no)};
      },
      place.answer_by(deadline), Cancel());
  if (!answers) return answers.error();
  const auto& [synced, ticked, got] = answers.value();
  if (got->code == ZNONODE) return std::optional<Mark>();
  if (!got->ok()) return session.refused(got, "read " + path);
  return valid_mark(name, *got, time_by(ticked));
}

// The right to create a node is checked before it is found that there is one.
Result<void> prepare_marks(Session& session, const Place& place, Deadline deadline) {
  const std::string folder = marks_folder(place);
  for (;;) {
    const auto answers = session.persist(
        [&] {
          return std::array{create(session.handle(), marks_clock(place), "", NodeKind::persistent,
                                   !place.auth.empty()),
                            set(session.handle(), folder, ""),
                            get_children(session.handle(), folder, Watch::no)};
        },
        place.answer_by(deadline), Cancel());
    if (!answers) return answers.error();
    const auto& [created, written, listed] = answers.value();
    if (created->code == ZNONODE || written->code == ZNONODE) {
      if (Clock::now() >= deadline) return session.silent();
      auto made = make_persistent(session, place, folder, place.answer_by(deadline), Cancel());
      if (!made) return made.error();
      continue;
    }
    if (!created->ok() && created->code != ZNODEEXISTS) {
      return session.refused(created, "create nodes in " + folder);
    }
    if (!written->ok()) return session.refused(written, "write " + folder);
    if (listed->ok()) {
      sweep(session, place, listed->names, written->stat.version, time_by(written), deadline);
    }
    return {};
  }
}

Result<std::vector<Mark>> list_marks(Session& session, const Place& place, std::string_view prefix,
                                     Deadline deadline) {
  const std::string folder = marks_folder(place);
  const auto answers = session.persist(
      [&] {
        return std::array{sync(session.handle(), folder),
                          set(session.handle(), marks_clock(place), ""),
                          get_children(session.handle(), folder, Watch::no)};
      },
      place.answer_by(deadline), Cancel());
  if (!answers) return answers.error();
  const auto& [synced, ticked, listed] = answers.value();
  if (listed->code == ZNONODE) return std::vector<Mark>();
  if (!listed->ok()) return session.refused(listed, "list " + folder);
  std::vector<MarkName> names;
  for (const std::string& node : listed->names) {
    auto name = mark_of(node);
    if (name && name->key.starts_with(prefix)) names.push_back(std::move(*name));
  }
  std::sort(names.begin(), names.end());
  const std::int64_t now = time_by(ticked);
  std::vector<Mark> marks;
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
      auto mark = got.ok() ? valid_mark(names[from + index], got, now) : std::nullopt;
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
    const auto answers = session.persist(
        [&] {
          return std::array{sync(session.handle(), path),
                            set(session.handle(), marks_clock(place), ""),
                            get(session.handle(), marks_folder(place), Watch::no),
                            get(session.handle(), path, Watch::no)};
        },
        place.answer_by(deadline), Cancel());
    if (!answers) return answers.error();
    const auto& [synced, ticked, folder, got] = answers.value();
    if (got->code == ZNONODE) return in_doubt;  // what we did not hear of was our own doing
    if (!got->ok()) return session.refused(got, "read " + path);
    if (!folder->ok()) return session.refused(folder, "read " + marks_folder(place));
    if (first && got->stat.mzxid != *first) return true;
    if (!first && !valid_mark(name, *got, time_by(ticked))) return false;
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
    if (Clock::now() >= deadline) return session.silent();
  }
}

Completing::Completing(std::shared_ptr<const Place> place, const MarkName& name, std::string record,
                       std::string queued)
    : place_(std::move(place)),
      path_(mark_path(*place_, name)),
      record_(std::move(record)),
      queued_(std::move(queued)) {}

Call Completing::ask(Session& session) const {
  return all_or_none(session.handle(),
                     {{Step::Kind::check, queued_},
                      {Step::Kind::set, marks_folder(*place_)},
                      {exists_ ? Step::Kind::set : Step::Kind::create, path_, record_},
                      {Step::Kind::remove, queued_}},
                     !place_->auth.empty());
}

bool Completing::lock_is_gone(const Reply& call) { return call.failed_at(0, ZNONODE); }

Result<void> Completing::adapt(Session& session, const Call& call, Deadline deadline,
                               Cancel cancel) {
  if (call->failed_at(1, ZNONODE)) {
    return make_persistent(session, *place_, marks_folder(*place_), deadline, cancel);
  }
  if (call->failed_at(2, exists_ ? ZNONODE : ZNODEEXISTS)) {
    exists_ = !exists_;
    return {};
  }
  return session.refused(call, "write " + path_);
}

// A new session is made by the servers after all that they have carried out for an earlier one.
Result<bool> Completing::is_done_by(std::string_view owner_id, Millis ttl, Deadline deadline,
                                    Cancel cancel) const {
  Session session(place_, ttl);
  if (auto ok = session.open(deadline, cancel); !ok) return ok.error();
  const auto answers = session.persist(
      [&] { return std::array{get(session.handle(), path_, Watch::no)}; }, deadline, cancel);
  if (!answers) return answers.error();
  const Call& got = answers.value()[0];
  session.close();
  if (!got->ok() && got->code != ZNONODE) return session.refused(got, "read " + path_);
  const auto record = got->ok() ? parse_mark(got->text) : std::nullopt;
  return record && record->owner.id == owner_id;
}

}  // namespace dlock::zookeeper
