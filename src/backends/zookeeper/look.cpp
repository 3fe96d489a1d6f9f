#include "backends/zookeeper/look.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <map>

#include "backends/zookeeper/queue.hpp"
#include "core/lock_record.hpp"
#include "util/host.hpp"
#include "util/text.hpp"

namespace dlock::zookeeper {
namespace {

constexpr std::size_t kAtOnce = 200;  // the server stops reading when too much is under way
constexpr std::size_t kMostShown = 100;

// Since when, by the clocks of the server and of this machine.
Millis since(std::int64_t wall_ms) {
  using std::chrono::system_clock;
  const auto now = std::chrono::duration_cast<Millis>(system_clock::now().time_since_epoch());
  constexpr std::int64_t kYears = 30'000'000'000'000;
  return std::max(now - Millis{std::clamp<std::int64_t>(wall_ms, 0, kYears)}, Millis{0});
}

std::string hex(std::int64_t number) {
  std::array<char, 20> text{};
  std::snprintf(text.data(), text.size(), "%llx", static_cast<unsigned long long>(number));
  return text.data();
}

LockInfo::Waiter waiter_of(const NodeName& node, const Reply* data) {
  LockInfo::Waiter waiter;
  waiter.mode = node.claim.mode;
  if (data == nullptr || !data->ok()) return waiter;
  if (auto record = parse_lock_record(data->text)) waiter.owner = std::move(record->owner);
  waiter.waiting = since(data->stat.ctime);
  return waiter;
}

}  // namespace

Result<void> read_each(Session& session, const std::string& path,
                       const std::vector<std::string>& children, Deadline deadline, Cancel cancel,
                       const std::function<void(std::size_t index, const Reply&)>& take) {
  for (std::size_t from = 0; from < children.size(); from += kAtOnce) {
    const std::size_t to = std::min(from + kAtOnce, children.size());
    const auto answers = session.persist(
        [&] {
          std::vector<Call> calls;
          for (std::size_t i = from; i < to; ++i) {
            calls.push_back(get(session.handle(), path + '/' + children[i], Watch::no));
          }
          return calls;
        },
        deadline, cancel);
    if (!answers) return answers.error();
    for (std::size_t i = from; i < to; ++i) {
      const Call& answer = answers.value()[i - from];
      if (!answer->ok() && answer->code != ZNONODE && answer->code != ZNOAUTH) {
        return session.refused(answer, "read " + path + '/' + children[i]);
      }
      take(i, *answer);
    }
  }
  return {};
}

// Ours writes its record when it has the lock, unless it had it from the start; of others nobody
// knows how long they waited.
LockInfo::Holder holder_of(const NodeName& node, const Reply& data) {
  LockInfo::Holder holder;
  if (!data.ok()) {  // we may not read it
    holder.foreign = std::string(node.maker);
    holder.owner.id = node.uuid.empty() ? node.name : node.uuid;
    return holder;
  }
  holder.fence = static_cast<std::uint64_t>(data.stat.czxid);
  holder.endless = data.stat.ephemeralOwner == 0;
  if (auto record = parse_lock_record(data.text)) {
    holder.owner = std::move(record->owner);
    holder.held = since(data.stat.mtime);
    holder.acquired_at = util::utc_in(-*holder.held);
    return holder;
  }
  holder.foreign = std::string(node.maker);
  const std::string grant = hex(data.stat.czxid);
  holder.owner.id = node.uuid.empty() ? grant : node.uuid + '-' + grant;
  return holder;
}

Result<LockInfo> look_at(Session& session, const std::string& path, std::string_view key,
                         const std::vector<std::string>& children, bool waiters_too,
                         Deadline deadline, Cancel cancel) {
  LockInfo info{.key = std::string(key)};
  info.waiters.emplace();
  const std::vector<NodeName> queue = queue_of(children);
  std::vector<std::string> numbered;
  std::copy_if(children.begin(), children.end(), std::back_inserter(numbered),
               [](const std::string& child) { return slot_of(child).has_value(); });
  if (const auto others = children.size() - queue.size() - numbered.size(); others > 0) {
    info.remarks.push_back(std::to_string(others) + " under " + util::printable(path) +
                           " that are no locks, for want of a number");
  }
  const std::size_t holders = count_holders(queue);
  if (holders > 0) {
    info.mode = queue.front().claim.mode;
    info.slots = queue.front().claim.slots;
  }
  const std::size_t asked_of = waiters_too ? queue.size() : std::min(holders, kMostShown);
  if (info.mode != Mode::slots) numbered.clear();
  if (!waiters_too) numbered.resize(std::min(numbered.size(), kMostShown));
  std::vector<std::string> asked = numbered;
  for (std::size_t i = 0; i < asked_of; ++i) asked.push_back(queue[i].name);
  std::map<std::string, unsigned> numbers;  // by the uuid of the holder
  const auto take = [&](std::size_t index, const Reply& answer) {
    if (index < numbered.size()) {
      if (answer.ok()) numbers[answer.text] = *slot_of(numbered[index]);
      return;
    }
    const std::size_t place = index - numbered.size();
    const NodeName& node = queue[place];
    if (answer.code == ZNONODE) return;
    if (place >= holders) {
      info.waiters->push_back(waiter_of(node, &answer));
      return;
    }
    info.holders.push_back(holder_of(node, answer));
    if (const auto found = numbers.find(node.uuid); found != numbers.end()) {
      info.holders.back().slot = found->second;
    }
  };
  if (auto ok = read_each(session, path, asked, deadline, cancel, take); !ok) return ok.error();
  for (std::size_t i = std::max(asked_of, holders); i < queue.size(); ++i) {
    info.waiters->push_back(waiter_of(queue[i], nullptr));
  }
  return info;
}

}  // namespace dlock::zookeeper
