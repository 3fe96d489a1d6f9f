// As read in their sources:
//   Curator  _c_<uuid>-lock-N       InterProcessMutex
//            _c_<uuid>-__READ__N    InterProcessReadWriteLock, readLock
//            _c_<uuid>-__WRIT__N    and writeLock
//   kazoo    <32 hex>__lock__N      Lock and WriteLock
//            <32 hex>__rlock__N     ReadLock
// Each sorts by what stands behind its own mark and so does not see the others' nodes, or not in
// their order: that is what ?style= of the URL is for.  A slot of dlock ends like a mutex, so that
// mutexes of the same library wait for it.
#include "backends/zookeeper/names.hpp"

#include <algorithm>

#include "util/random_id.hpp"
#include "util/text.hpp"

namespace dlock::zookeeper {
namespace {

constexpr std::size_t kDigits = 10;
constexpr std::size_t kUuid = 36;
constexpr std::string_view kSlot = "slot-";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }

// printf's %010d of a signed number: ten characters, or eleven from -1000000000 on.  Before ten
// digits a - can be a sign, or the end of what stands before (`lock-1000000000`).
std::optional<std::int32_t> take_sequence(std::string_view& name) {
  if (name.size() < kDigits) return std::nullopt;
  std::size_t at = name.size() - kDigits;
  const bool digits =
      std::all_of(name.begin() + static_cast<std::ptrdiff_t>(at) + 1, name.end(), is_digit);
  if (!digits || (!is_digit(name[at]) && name[at] != '-')) return std::nullopt;
  if (is_digit(name[at]) && name[at] != '0' && at > 0 && name[at - 1] == '-' &&
      (at == 1 || name[at - 2] == '-' || name[at - 2] == '_')) {
    --at;
  }
  const auto number = util::parse_int(name.substr(at), INT32_MIN, INT32_MAX);
  if (!number) return std::nullopt;
  name.remove_suffix(name.size() - at);
  return static_cast<std::int32_t>(*number);
}

bool take_end(std::string_view& text, std::string_view end) {
  if (!text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  return true;
}

// "...slots-3": how many they are.
std::optional<unsigned> slots_at_end(std::string_view text) {
  constexpr std::string_view kMark = "slots-";
  const auto at = text.rfind(kMark);
  if (at == std::string_view::npos) return std::nullopt;
  const auto number = util::parse_int(text.substr(at + kMark.size()), 1, INT32_MAX);
  return number ? std::optional(static_cast<unsigned>(*number)) : std::nullopt;
}

void set_slots(NodeName& node, std::string_view before) {
  if (const auto slots = slots_at_end(before)) {
    node.claim = {Mode::slots, *slots};
  }
}

// Of `_c_0f3a...-4c5d-...-lock-` and `0f3a...__lock__`.
std::string uuid_in(std::string_view name) {
  constexpr std::string_view kProtected = "_c_";
  std::string out;
  if (name.starts_with(kProtected)) {
    for (const char c : name.substr(kProtected.size(), kUuid)) {
      if (c != '-') out += c;
    }
  } else {
    out = name.substr(0, 32);
  }
  return out.size() == 32 && std::all_of(out.begin(), out.end(), is_hex) ? out : "";
}

std::string with_dashes(std::string_view uuid) {
  std::string out(uuid);
  for (const std::size_t at : {8, 13, 18, 23}) out.insert(at, 1, '-');
  return out;
}

}  // namespace

std::optional<Style> parse_style(std::string_view text) {
  if (text.empty() || text == "curator") return Style::curator;
  if (text == "curator-rw") return Style::curator_rw;
  if (text == "kazoo") return Style::kazoo;
  return std::nullopt;
}

std::optional<NodeName> parse_node(std::string_view name) {
  std::string_view rest = name;
  const auto sequence = take_sequence(rest);
  if (!sequence) return std::nullopt;
  NodeName node{.name = std::string(name), .sequence = *sequence, .maker = "unknown"};
  node.uuid = uuid_in(name);
  if (take_end(rest, "__READ__")) {
    node.claim = {Mode::shared};
    node.maker = "curator";
  } else if (take_end(rest, "__WRIT__")) {
    node.maker = "curator";
  } else if (take_end(rest, "__rlock__")) {
    node.claim = {Mode::shared};
    node.maker = "kazoo";
  } else if (take_end(rest, "__lock__")) {
    node.maker = "kazoo";
    set_slots(node, rest);
  } else if (take_end(rest, "lock-")) {
    node.maker = "curator";
    if (take_end(rest, "-")) set_slots(node, rest);
  }
  return node;
}

std::string node_prefix(Style style, Claim claim, std::string_view uuid) {
  const Mode mode = claim.mode;
  const std::string count = "slots-" + std::to_string(claim.slots);
  if (style == Style::kazoo) {
    const std::string out(uuid);
    if (mode == Mode::shared) return out + "__rlock__";
    return out + (mode == Mode::slots ? "__" + count : "") + "__lock__";
  }
  const std::string out = "_c_" + with_dashes(uuid) + '-';
  if (mode == Mode::shared) return out + "__READ__";
  if (mode == Mode::slots) return out + count + "-lock-";
  return out + (style == Style::curator_rw ? "__WRIT__" : "lock-");
}

std::string slot_node(unsigned number) { return std::string(kSlot) + std::to_string(number); }

std::optional<unsigned> slot_of(std::string_view child) {
  if (!child.starts_with(kSlot) || parse_node(child)) return std::nullopt;
  const auto number = util::parse_int(child.substr(kSlot.size()), 1, INT32_MAX);
  if (!number || slot_node(static_cast<unsigned>(*number)) != child) return std::nullopt;
  return static_cast<unsigned>(*number);
}

std::string uuid_for(std::string_view owner_id) {
  const bool fits = owner_id.size() == 32 && std::all_of(owner_id.begin(), owner_id.end(), is_hex);
  return fits ? std::string(owner_id) : util::random_id();
}

std::string node_of(std::string_view key) { return util::percent_encode(key); }

std::optional<std::string> key_of(std::string_view node) {
  auto key = util::percent_decode(node);
  if (!key || key->empty() || node_of(*key) != node) return std::nullopt;
  return key;
}

// node_of() encodes a ~.
std::string mark_node(const MarkName& name) {
  return node_of(name.key) + (name.period.empty() ? "" : '~' + name.period);
}

std::optional<MarkName> mark_of(std::string_view node) {
  const auto key = key_of(node.substr(0, node.find('~')));
  if (!key) return std::nullopt;
  MarkName name{*key, std::string(node.substr(std::min(node.find('~'), node.size())))};
  if (!name.period.empty()) name.period.erase(0, 1);
  if (!is_period(name.period) || mark_node(name) != node) return std::nullopt;
  return name;
}

}  // namespace dlock::zookeeper
