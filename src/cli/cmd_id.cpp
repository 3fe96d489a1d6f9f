#include <cstdint>
#include <functional>
#include <string>

#include "cli/cmd.hpp"
#include "cli/layers.hpp"
#include "cli/lock_service.hpp"
#include "cli/print_json.hpp"
#include "cli/print_text.hpp"
#include "cli/refusal.hpp"
#include "cli/source.hpp"
#include "cli/values.hpp"
#include "core/key.hpp"
#include "engine/exit_status.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

struct Ids {
  std::uint64_t count = 0;
  std::function<std::uint64_t(std::uint64_t index)> at;
};

Result<Ids> take(Backend& backend, const std::string* name, std::uint64_t count,
                 Deadline deadline) {
  if (name != nullptr) {
    const auto first = backend.take_numbers(*name, count, deadline);
    if (!first) return first.error();
    return Ids{count, [from = first.value()](std::uint64_t index) { return from + index; }};
  }
  const auto window = backend.lease_window(window_length(count), deadline);
  if (!window) return window.error();
  return Ids{count,
             [from = window.value()](std::uint64_t index) { return snowflake_id(from, index); }};
}

// One text is one write.  A million small writes would take longer than everything else.
std::string for_people(const Ids& ids) {
  std::string out;
  for (std::uint64_t i = 0; i < ids.count; ++i) out += std::to_string(ids.at(i)) + '\n';
  return out;
}

// Numbers are strings in JSON, because many programs read JSON numbers as floating point, which is
// exact up to 2^53.
std::string as_json(const Ids& ids, const std::string* name, const Backend& backend) {
  Lines lines;
  lines.reserve(ids.count);
  for (std::uint64_t i = 0; i < ids.count; ++i) lines.push_back(std::to_string(ids.at(i)));
  const Cell shown = name == nullptr ? Cell() : Cell(*name);
  const std::string location = name == nullptr ? backend.location() : backend.location_of(*name);
  return print_json(Object{{{"backend", location}, {"name", shown}, {"ids", std::move(lines)}}});
}

}  // namespace

int cmd_id(const Invocation& invocation, std::span<const BackendEntry> backends) {
  const LockService service(invocation, backends);
  const Setting* name = effective(service.settings(), flag("name"));
  const Setting* snowflake = effective(service.settings(), flag("snowflake"));
  if (name == nullptr && snowflake == nullptr) {
    refuse_usage("say which: --name NAME for numbers of a counter, or --snowflake");
  }
  if (name != nullptr) {
    if (auto ok = check_key(name->text(), "name"); !ok) {
      refuse(*name, ok.error().message);
    }
  }
  const Setting* given = service.settings().find("count");
  const auto count = static_cast<std::uint64_t>(given ? to_number(*given, flag("count")) : 1);
  refuse_if_forgetful(service.entry(), "has no counters", backends);
  const auto backend = service.open();
  if (!backend) return service.report(backend.error());
  const std::string* key = name != nullptr ? &name->text() : nullptr;
  const auto ids = take(*backend.value(), key, count, service.patience());
  if (!ids) return service.report(ids.error(), exit_status::kBusy);
  return write_stdout(service.json() ? as_json(ids.value(), key, *backend.value())
                                     : for_people(ids.value()));
}

}  // namespace dlock::cli
