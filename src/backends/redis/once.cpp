// Entries   of one name are ordered by rank: the fence of the grant, and a reset above the mark
//           that it forgets.  A server never replaces an entry by a lower one.
// Several   servers.  A holder writes its mark on a majority, each of which checks in the same step
//           that the lock is still the holder's.  Only then is the lock released, on any of them.
//           Why not in one step: a holder releases on server 1 and is slow to ask server 2, where
//           it has the lock, too.  The next holder is granted 1 and 3, reads 2 and 3, finds no
//           mark, and runs; then the mark comes to 2, and the first one has its majority.  So while
//           a majority is being written nobody else can have the lock, and what was not written
//           within the lease does not count.  (Somebody who breaks the lock at this very moment may
//           have it run twice.)
// Reading.  Of a majority the highest entry counts: that is the newest one that a majority has, or
//           a newer one.  A minority may have it from a holder that has gone.  What one call has
//           seen each later call must see, so before it is told it is written to a majority (as in
//           Attiya, Bar-Noy, Dolev: "Sharing Memory Robustly in Message-Passing Systems").  An
//           entry whose time is over says as much as none, and is not written anywhere.
// Time.     Each server counts for itself what was left when it was told, so their entries end at
//           nearly the same time.  What is read is older by now than when it was measured: that is
//           taken off before it is written elsewhere, or copies of copies would live on and on.
//           A request to complete that comes late, but while the lock is there, counts from then.
// Forgetting writes a reset instead of deleting, since a server that is away may have the mark: the
//           reset keeps it from coming back for as long as it, or a request to write it, can be
//           there.  A run that goes on at that time has a higher fence, and so has its mark.
// Limits.   Where a server loses its data, so that fewer than a majority have an entry, a read may
//           miss it: then the job is run again, or a mark that was forgotten is back.  Most often
//           all servers have it, and a read puts it back if one of the majority that answers first
//           lacks it; a server that is not among those goes without it until then.  What was
//           remembered for different times under one name, and only a minority heard of the earlier
//           run, may come back when the later mark is over: it was done, and to be remembered as
//           long.
#include "backends/redis/once.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "backends/redis/quorum.hpp"
#include "backends/redis/round.hpp"
#include "util/log.hpp"

namespace dlock::redis {
namespace {

// Longer than any lease, for which a request to complete may be late.
constexpr Millis kLateWrites{24 * 3'600'000};
// So long those beyond the majority are waited for, where what they say is of interest.
constexpr Millis kOthers{200};

// Asks `nodes` until `needed` of them have answered well, and for `others` more; hands over each
// answer by take(node, Answer&).
template <class Answer, class Ask, class Take>
Result<void> ask_most(Cluster& cluster, const std::vector<unsigned>& nodes, unsigned needed,
                      Millis others, Deadline deadline, Ask ask, Take take) {
  if (needed == 0) return {};
  std::vector<std::optional<Error>> errors(cluster.size());
  for (const unsigned node : nodes) {
    errors[node] = {Errc::unreachable, cluster.address(node).shown + ": no answer in time"};
  }
  unsigned answered = 0;
  Deadline until = std::min(deadline, after(Clock::now(), cluster.address(0).patience));
  cluster.gather<Answer>(
      nodes, ask,
      [&](unsigned node, Result<Answer>& answer) {
        if (!answer) {
          errors[node] = answer.error();
          return false;
        }
        errors[node].reset();
        take(node, *answer);
        if (++answered == needed) until = std::min(until, after(Clock::now(), others));
        return answered >= needed && others == Millis{0};
      },
      [&] { return until; }, Cancel());
  if (answered >= needed) return {};
  return too_few(quorum(cluster.size()), errors);
}

// What a majority has said.
struct Reading {
  std::optional<Entry> highest;
  Deadline ends;  // the time of the highest, by our clock
  std::vector<bool> have_it;
  Millis longest{0};  // of all entries, how long one is there
};

Result<Reading> read_entries(Cluster& cluster, const MarkName& name, Millis others,
                             Deadline deadline) {
  const Deadline asked = Clock::now();
  std::vector<std::optional<Entry>> found(cluster.size());
  const auto ok = ask_most<std::optional<Entry>>(
      cluster, cluster.all(), quorum(cluster.size()), others, deadline,
      [name, deadline](Node& node, unsigned, Cancel stop) {
        return node.find_entry(name, deadline, stop);
      },
      [&](unsigned node, std::optional<Entry>& entry) { found[node] = std::move(entry); });
  if (!ok) return ok.error();
  Reading out{.highest = {}, .ends = asked, .have_it = std::vector<bool>(cluster.size())};
  for (const auto& entry : found) {
    if (!entry) continue;
    out.longest = std::max(out.longest, entry->left);
    if (!out.highest || entry->is_higher_than(*out.highest)) {
      out.highest = entry;
    } else if (entry->is_same_as(*out.highest)) {
      out.highest->left = std::max(out.highest->left, entry->left);
    }
  }
  if (!out.highest) return out;
  for (const unsigned node : cluster.all()) {
    out.have_it[node] = found[node] && found[node]->is_same_as(*out.highest);
  }
  out.ends = after(asked, out.highest->left);
  out.highest->left -= since(asked);
  return out;
}

// Until a majority has it, or a higher one.  What is left until it `ends` is measured when a server
// is told, and not before: a process that was suspended since would bring back what was forgotten.
Result<void> write_entry(Cluster& cluster, const MarkName& name, const Entry& entry, Deadline ends,
                         const std::vector<bool>& have_it, Deadline deadline) {
  std::vector<unsigned> nodes = cluster.all();
  std::erase_if(nodes, [&](unsigned node) { return have_it[node]; });
  const unsigned have = cluster.size() - static_cast<unsigned>(nodes.size());
  const unsigned majority = quorum(cluster.size());
  return ask_most<bool>(
      cluster, nodes, majority - std::min(have, majority), Millis{0}, deadline,
      [name, entry, ends, deadline](Node& node, unsigned, Cancel stop) -> Result<bool> {
        Entry current = entry;
        current.left = remaining(ends);
        if (current.left == Millis{0}) return true;  // says as much as none
        return node.keep_entry(name, current, deadline, stop);
      },
      [](unsigned, bool) {});
}

// Of servers that may all lose it at one time, as after a power failure, if too few would remember.
void warn_of_loss(const Cluster& cluster, std::vector<unsigned> nodes, std::string_view one,
                  std::string_view several) {
  if (cluster.size() - nodes.size() >= quorum(cluster.size())) return;
  std::sort(nodes.begin(), nodes.end());
  std::string shown;
  for (const unsigned node : nodes) {
    shown += (shown.empty() ? "" : ", ") + cluster.address(node).shown;
  }
  util::log(util::Level::warning, (shown + ": ").append(nodes.size() == 1 ? one : several));
}

}  // namespace

Result<std::optional<Mark>> find_mark(Cluster& cluster, const MarkName& name, Deadline deadline) {
  const auto reading = read_entries(cluster, name, Millis{0}, deadline);
  if (!reading) return reading.error();
  const auto& highest = reading.value().highest;
  if (!highest || highest->left <= Millis{0}) return std::optional<Mark>();
  if (auto ok = write_entry(cluster, name, *highest, reading.value().ends, reading.value().have_it,
                            deadline);
      !ok) {
    return ok.error();
  }
  if (highest->is_reset) return std::optional<Mark>();
  return std::optional(mark_in(*highest, name));
}

// What only a minority has, of a run that failed to complete, is to be forgotten, too: a read may
// find it later.
Result<bool> forget_mark(Cluster& cluster, const MarkName& name, Deadline deadline) {
  auto reading = read_entries(cluster, name, kOthers, deadline);
  if (!reading) return reading.error();
  if (!reading->highest || reading->highest->left <= Millis{0}) return false;
  Entry reset = *reading->highest;
  if (!reset.is_reset) {
    reading->have_it.assign(cluster.size(), false);
    // Two clocks may differ by 2 %.
    reading->ends = after(Clock::now(), reading->longest + reading->longest / 50 + kLateWrites);
  }
  const bool was_there = !std::exchange(reset.is_reset, true);
  if (auto ok = write_entry(cluster, name, reset, reading->ends, reading->have_it, deadline); !ok) {
    return ok.error();
  }
  return was_there;
}

// Written nowhere: this is for people, and who runs a job by it asks find_mark().  It shows also
// what only a minority has, so that it can be forgotten.
Result<std::vector<Mark>> list_marks(Cluster& cluster, std::string_view prefix, Deadline deadline) {
  std::map<MarkName, Entry> highest;
  const auto ok = ask_most<std::vector<NamedEntry>>(
      cluster, cluster.all(), quorum(cluster.size()), kOthers, deadline,
      [prefix = std::string(prefix), deadline](Node& node, unsigned, Cancel stop) {
        return node.list_entries(prefix, deadline, stop);
      },
      [&](unsigned, std::vector<NamedEntry>& entries) {
        for (NamedEntry& its : entries) {
          const auto [at, is_new] = highest.try_emplace(std::move(its.name), its.entry);
          if (!is_new && its.entry.is_higher_than(at->second)) at->second = std::move(its.entry);
        }
      });
  if (!ok) return ok.error();
  std::vector<Mark> out;
  for (const auto& [name, entry] : highest) {
    if (!entry.is_reset && entry.left > Millis{0}) out.push_back(mark_in(entry, name));
  }
  return out;
}

Result<void> prepare_marks(Cluster& cluster, std::string_view key, Deadline deadline) {
  std::vector<unsigned> not_saving;
  std::vector<unsigned> evicting;
  // The others are asked for a warning only, and the lease of the lock is running.
  const Millis others = std::min(kOthers, remaining(deadline) / 10);
  const auto ok = ask_most<Losses>(
      cluster, cluster.all(), quorum(cluster.size()), others, deadline,
      [key = std::string(key), deadline](Node& node, unsigned, Cancel stop) {
        return node.prepare_marks(key, deadline, stop);
      },
      [&](unsigned node, Losses losses) {
        if (losses.saves_nothing) not_saving.push_back(node);
        if (losses.may_evict) evicting.push_back(node);
      });
  if (!ok) return ok.error();
  warn_of_loss(cluster, not_saving,
               "this server saves nothing to disk, so what dlock once remembers is lost when it "
               "restarts; set \"appendonly yes\" there",
               "these servers save nothing to disk, so what dlock once remembers is lost when they "
               "restart; set \"appendonly yes\" there");
  warn_of_loss(cluster, evicting,
               "this server drops keys when it is out of memory, and with them what dlock once "
               "remembers; set \"maxmemory-policy noeviction\" there",
               "these servers drop keys when they are out of memory, and with them what dlock once "
               "remembers; set \"maxmemory-policy noeviction\" there");
  return {};
}

}  // namespace dlock::redis
