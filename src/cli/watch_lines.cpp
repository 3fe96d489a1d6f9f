#include "cli/watch_lines.hpp"

#include <algorithm>

#include "cli/print_json.hpp"
#include "cli/print_text.hpp"
#include "cli/values.hpp"
#include "cli/watch_screen.hpp"
#include "util/host.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

Object object_of(const WatchedPlace& place, const LockRow& row, const std::string& event,
                 const Columns<LockRow>& columns) {
  const std::string& key = row.lock->key;
  const auto found = std::ranges::lower_bound(place.now, key, {}, &LockInfo::key);
  const bool is_there = found != place.now.end() && found->key == key;
  const LockInfo::Holder* holder = row.holder;
  if (row.waiter != nullptr && is_there && !found->holders.empty()) holder = &found->holders[0];
  const auto one = [&](std::string_view name, const LockRow& party) {
    return Object::Field{name, {}, {{party_object(party, columns)}}, true};
  };
  Object out{{{"time", util::utc_now()}, {"event", event}}};
  if (!place.profile.empty()) out.fields.push_back({"profile", place.profile});
  out.fields.push_back({"key", key});
  out.fields.push_back(holder != nullptr ? one("holder", {row.lock, holder})
                                         : Object::Field{"holder", {}});
  if (row.waiter != nullptr) out.fields.push_back(one("waiter", row));
  const std::size_t waiters = is_there && found->waiters ? found->waiters->size() : 0;
  const bool is_known = place.service->traits().knows_waiters;
  out.fields.push_back({"waiters", is_known ? Cell(std::uint64_t{waiters}) : Cell()});
  return out;
}

}  // namespace

void print_changes(const WatchedPlace& place, bool is_first) {
  const LockService& service = *place.service;
  const auto columns = !service.columns().empty()
                           ? service.columns()
                           : chosen_columns({{"key,host,pid,command"}, Layer::flag, ""});
  const char* came = is_first || service.older_than() ? "present" : "acquired";
  for (const auto& [row, change, profile] : place.rows) {
    const bool is_party = row.holder != nullptr || row.waiter != nullptr;
    if (change == Change::none || !is_party) continue;
    const std::string event = change == Change::gone  ? "gone"
                              : row.waiter != nullptr ? "waiting"
                                                      : came;
    if (service.json()) {
      print_out(print_json_line(object_of(place, row, event, service.columns())));
      continue;
    }
    std::string line = util::utc_now() + "  " + event;
    if (!profile.empty()) line += "  " + util::printable(profile);
    for (const auto* column : columns) line += "  " + cell_text(column->cell(row));
    print_out(line + '\n');
  }
}

}  // namespace dlock::cli
