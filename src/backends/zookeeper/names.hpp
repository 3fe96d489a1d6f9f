// What the nodes of a lock are called, by dlock and by others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/backend.hpp"

namespace dlock::zookeeper {

enum class Style { curator, curator_rw, kazoo };

/// Of ?style= in the URL.
std::optional<Style> parse_style(std::string_view text);

/// The child of a lock that stands for a holder or a waiter.
struct NodeName {
  std::string name;
  std::int32_t sequence = 0;  // signed, as the server counts
  Claim claim;
  std::string uuid;        // 32 hex digits, of the client; "" if there is none in the name
  std::string_view maker;  // whose names are like that: "curator", "kazoo", "unknown"
};

/// None for a name that does not end in a sequence number: that child is not in the queue.
std::optional<NodeName> parse_node(std::string_view name);

/// The name without the sequence, which the server adds.
std::string node_prefix(Style style, Claim claim, std::string_view uuid);

/// The node, beside the queue, of the holder that has slot `number`: "slot-3".
std::string slot_node(unsigned number);
/// None for a child of a lock that is no such node.
std::optional<unsigned> slot_of(std::string_view child);

/// 32 hex digits for an owner: its id, if that is what it consists of.
std::string uuid_for(std::string_view owner_id);

/// The node of a lock, below the root.  Any key is one safe component, and comes back by key_of().
std::string node_of(std::string_view key);
/// None for a node that is no lock of ours: one that node_of() would have called something else.
std::optional<std::string> key_of(std::string_view node);

/// The node, below the root, with the reasons of broken locks.  No key is called like that.
inline constexpr std::string_view kBroken = "%broken";

/// The same, with the numbers of `dlock id`.
inline constexpr std::string_view kNumbers = "%ids";

/// The same, with what `dlock once` remembers.
inline constexpr std::string_view kDone = "%done";

/// The node of a mark, below kDone: "job" or "job~2026-11-22".
std::string mark_node(const MarkName& name);
/// None for a node that is no mark.
std::optional<MarkName> mark_of(std::string_view node);

}  // namespace dlock::zookeeper
