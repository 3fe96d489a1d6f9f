// Who is a holder.  Of the servers that answered, some report it; those that are silent may have it
//                   too.  So it may hold the lock if those that report it and the silent ones are a
//                   quorum.  Then the lock is shown as held: an operator who reads "free" goes on
//                   to start by hand what must not run twice, and one who reads "held" looks again.
//                   With all servers there, no doubt is left.
// How many.         With silent servers, more may look like holders than there can be: two, say,
//                   that each have one server, while a third is silent.  Those count that the most
//                   servers report.
#include "backends/redis/merge.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "backends/redis/quorum.hpp"
#include "backends/redis/server_errors.hpp"
#include "util/text.hpp"

namespace dlock::redis {
namespace {

using Holder = LockInfo::Holder;
using Waiter = LockInfo::Waiter;
using Looks = std::span<const Result<LockInfo>>;
using Servers = std::span<const std::string>;

constexpr std::size_t kShortId = 12;  // whoever has a whole one can release it

// Of one server, the second without an id is not the first again.
using Name = std::pair<std::string, unsigned>;

class Namer {
 public:
  Name operator()(const Owner& owner) { return {owner.id, seen_[owner.id]++}; }

 private:
  std::map<std::string, unsigned> seen_;
};

// None if a majority answered.
template <class T>
std::optional<Error> missing_majority(std::span<const Result<T>> answers) {
  std::vector<std::optional<Error>> errors;
  for (const auto& answer : answers) {
    errors.push_back(answer ? std::nullopt : std::optional(answer.error()));
  }
  const unsigned needed = quorum(static_cast<unsigned>(answers.size()));
  const auto answered = std::ranges::count(errors, false, &std::optional<Error>::has_value);
  if (answered >= static_cast<std::ptrdiff_t>(needed)) return std::nullopt;
  return too_few(needed, errors);
}

// --- holders

// What is said of one who has the lock on some server.
struct Candidate {
  Name name;
  Mode mode = Mode::exclusive;
  unsigned slots = 1;
  std::vector<const Holder*> reports;  // one of each server that has it

  std::optional<std::uint64_t> fence() const {
    std::optional<std::uint64_t> out;
    for (const Holder* report : reports) out = std::max(out, report->fence);
    return out;
  }
};

std::vector<Candidate> claims_in(Looks looks) {
  std::vector<Candidate> claims;
  std::map<Name, std::size_t> places;
  for (const auto& look : looks) {
    if (!look) continue;
    Namer name_of;
    for (const Holder& holder : look.value().holders) {
      const Name name = name_of(holder.owner);
      const auto [place, is_new] = places.emplace(name, claims.size());
      if (is_new) claims.push_back({name, look.value().mode, look.value().slots, {}});
      claims[place->second].reports.push_back(&holder);
    }
  }
  return claims;
}

unsigned slots_of(const Candidate& claim) { return claim.mode == Mode::slots ? claim.slots : 1; }

// The claims that may be true together, in the order in which they came.
std::vector<Candidate> true_claims(std::vector<Candidate> claims, unsigned nodes, unsigned silent) {
  std::erase_if(claims, [&](const Candidate& claim) {
    return claim.reports.size() + silent < quorum(nodes);
  });
  if (claims.empty()) return claims;
  std::vector<const Candidate*> ranked;
  for (const Candidate& claim : claims) ranked.push_back(&claim);
  std::stable_sort(ranked.begin(), ranked.end(), [](const Candidate* a, const Candidate* b) {
    return std::pair(a->reports.size(), a->fence()) > std::pair(b->reports.size(), b->fence());
  });
  const Candidate& best = *ranked.front();
  std::erase_if(ranked, [&](const Candidate* claim) {
    return claim->mode != best.mode || claim->slots != best.slots;
  });
  if (best.mode != Mode::shared && ranked.size() > slots_of(best)) ranked.resize(slots_of(best));
  std::set<Name> chosen;
  for (const Candidate* claim : ranked) chosen.insert(claim->name);
  std::erase_if(claims, [&](const Candidate& claim) { return !chosen.contains(claim.name); });
  return claims;
}

// Until a report ends by itself; without an end is longer than any.
std::optional<Millis> end_of(const Holder& report) {
  return report.endless ? Millis::max() : report.expires;
}

// Where its record is missing, a holder of ours looks foreign.
bool tells_more(const Holder* a, const Holder* b) {
  return std::pair(!a->foreign, end_of(*a)) > std::pair(!b->foreign, end_of(*b));
}

Holder merged(const Candidate& claim, unsigned nodes) {
  const auto& reports = claim.reports;
  Holder out = **std::min_element(reports.begin(), reports.end(), tells_more);
  out.fence = claim.fence();
  std::vector<std::optional<Millis>> ends;
  for (const Holder* report : reports) {
    out.held = std::max(out.held, report->held);
    out.slot = std::max(out.slot, report->slot);  // none where its number is another's, for now
    ends.push_back(end_of(*report));
  }
  // After the last but quorum - 1 no quorum is left.  What silent servers have was written together
  // with the rest and ends with it.
  std::sort(ends.rbegin(), ends.rend());
  const std::size_t needed = std::min<std::size_t>(quorum(nodes), ends.size());
  const std::optional<Millis> end = ends[needed - 1];
  out.endless = end == Millis::max();
  out.expires = out.endless ? std::nullopt : end;
  return out;
}

// --- waiters

// They queue at whichever servers they reached.  Whoever holds the lock waits no more: it has not
// left every queue yet.
std::optional<std::vector<Waiter>> merged_waiters(Looks looks, const std::set<Name>& holders) {
  std::set<std::string_view> holding;
  for (const Name& name : holders) holding.insert(without_number(name.first));
  std::optional<std::vector<Waiter>> out;
  std::map<Name, std::size_t> places;
  for (const auto& look : looks) {
    if (!look || !look.value().waiters) continue;
    if (!out) out.emplace();
    Namer name_of;
    for (const Waiter& waiter : *look.value().waiters) {
      const Name name = name_of(waiter.owner);
      if (!waiter.owner.id.empty() && holding.contains(waiter.owner.id)) continue;
      const auto [place, is_new] = places.emplace(name, out->size());
      if (is_new) {
        out->push_back(waiter);
      } else {
        Waiter& known = (*out)[place->second];
        known.waiting = std::max(known.waiting, waiter.waiting);
      }
    }
  }
  if (out) {
    std::stable_sort(out->begin(), out->end(),
                     [](const Waiter& a, const Waiter& b) { return a.waiting > b.waiting; });
  }
  return out;
}

// --- who tells otherwise

// web-4 pid 17, or what else there is.
std::string in_words(const Holder& holder) {
  const auto clipped = [](const std::string& text) { return util::clipped(text, 60); };
  const Owner& owner = holder.owner;
  std::string out = clipped(owner.host);
  if (owner.pid > 0) out += (out.empty() ? "pid " : " pid ") + std::to_string(owner.pid);
  if (!out.empty()) return out;
  if (holder.foreign) out = *holder.foreign == "unknown" ? "another program" : *holder.foreign;
  if (owner.id.empty()) return out.empty() ? "an unknown holder" : out;
  return out + (out.empty() ? "id " : " id ") + clipped(owner.id.substr(0, kShortId));
}

std::string in_words(const std::vector<const Holder*>& holders) {
  std::string out = in_words(*holders.front());
  if (holders.size() > 1) out += " and " + std::to_string(holders.size() - 1) + " more";
  return out;
}

// What a server says that differs from `holders`; "" if nothing.
std::string difference(const LockInfo& look, const std::vector<Holder>& holders,
                       const std::set<Name>& names) {
  std::vector<const Holder*> others;
  std::set<Name> there;
  Namer name_of;
  for (const Holder& holder : look.holders) {
    const Name name = name_of(holder.owner);
    if (!names.contains(name)) others.push_back(&holder);
    there.insert(name);
  }
  if (!others.empty()) {
    return (others.size() < there.size() ? "also held by " : "held by ") + in_words(others) +
           " there";
  }
  if (there.size() == names.size()) return "";
  if (there.empty()) return "free there";
  std::vector<const Holder*> missing;
  Namer name_again;
  for (const Holder& holder : holders) {
    if (!there.contains(name_again(holder.owner))) missing.push_back(&holder);
  }
  return "not held by " + in_words(missing) + " there";
}

void add_remarks(LockInfo& out, Looks looks, Servers servers, const std::set<Name>& names) {
  out.nodes_agreeing = 0;
  for (std::size_t i = 0; i < looks.size(); ++i) {
    if (!looks[i]) {
      out.remarks.push_back(looks[i].error().message);
      continue;
    }
    const std::string text = difference(looks[i].value(), out.holders, names);
    if (text.empty()) {
      ++out.nodes_agreeing;
    } else {
      out.remarks.push_back(servers[i] + ": " + text);
    }
  }
}

}  // namespace

Result<LockInfo> merge_looks(std::string_view key, Looks looks, Servers servers) {
  if (auto error = missing_majority(looks)) return *std::move(error);
  const auto nodes = static_cast<unsigned>(looks.size());
  const auto silent = static_cast<unsigned>(
      std::count_if(looks.begin(), looks.end(), [](const auto& look) { return !look; }));
  LockInfo out{.key = std::string(key), .nodes_total = nodes};
  std::set<Name> names;
  for (const Candidate& claim : true_claims(claims_in(looks), nodes, silent)) {
    out.mode = claim.mode;
    out.slots = claim.slots;
    out.holders.push_back(merged(claim, nodes));
    names.insert(claim.name);
  }
  out.waiters = merged_waiters(looks, names);
  add_remarks(out, looks, servers, names);
  return out;
}

Result<std::vector<LockInfo>> merge_lists(std::span<const Result<std::vector<LockInfo>>> lists,
                                          Servers servers) {
  if (auto error = missing_majority(lists)) return *std::move(error);
  std::map<std::string_view, std::vector<const LockInfo*>> keys;  // what each server has of it
  for (std::size_t i = 0; i < lists.size(); ++i) {
    if (!lists[i]) continue;
    for (const LockInfo& lock : lists[i].value()) {
      auto& found = keys[lock.key];
      found.resize(lists.size());
      found[i] = &lock;
    }
  }
  std::vector<LockInfo> out;
  for (const auto& [key, found] : keys) {
    std::vector<Result<LockInfo>> looks;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      if (!lists[i]) {
        looks.emplace_back(lists[i].error());
      } else if (found[i] != nullptr) {
        looks.emplace_back(*found[i]);
      } else {
        looks.emplace_back(LockInfo{.key = std::string(key), .waiters = std::vector<Waiter>()});
      }
    }
    auto lock = merge_looks(key, looks, servers);
    if (!lock) return lock.error();
    if (!lock->holders.empty() || (lock->waiters && !lock->waiters->empty())) {
      out.push_back(std::move(*lock));
    }
  }
  return out;
}

}  // namespace dlock::redis
