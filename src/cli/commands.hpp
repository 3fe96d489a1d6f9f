// The table of commands.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "core/backend.hpp"

namespace dlock::cli {

struct Invocation;

/// One bit for each command: a flag lists the commands that take it.
enum CommandId : unsigned {
  kRun = 1U << 0,
  kBackends = 1U << 1,
  kHelp = 1U << 2,
  kVersion = 1U << 3,
  kComplete = 1U << 4,
  kList = 1U << 5,
  kShow = 1U << 6,
  kForceRelease = 1U << 7,
  kId = 1U << 8,
  kAcquire = 1U << 9,
  kRenew = 1U << 10,
  kRelease = 1U << 11,
  kOnce = 1U << 12,
  kDoctor = 1U << 13,
  kWatch = 1U << 14,
};
inline constexpr unsigned kEveryCommand = ~0U;

struct Command {
  CommandId id;
  std::string_view name;
  std::string_view synopsis;       // what follows the name: "[OPTION]... -- COMMAND [ARG]..."
  std::string_view brief;          // a phrase without full stop
  std::string_view heading = {};   // above it in the overview; empty: as the command before
  std::string_view text = {};      // of help: what it does; a blank line parts paragraphs
  std::string_view examples = {};  // of help, a line each
  std::string_view ending = {};    // of help, behind the options; as it is printed
  std::string_view operands;       // what the operands are, one word each; any number: "KEY..."
  std::size_t fewest_operands = 0;
  bool wraps = false;           // takes a command of the user's behind "--"
  std::string_view alone = {};  // the flag with which it takes none
  bool hidden = false;          // for our own scripts: not shown anywhere
  /// Runs the command and returns the exit status.  Throws Refusal.
  int (*execute)(const Invocation& invocation, std::span<const BackendEntry> backends) = nullptr;

  std::size_t most_operands() const;
};

std::span<const Command> commands();

/// Null if there is no such command.
const Command* find_command(std::string_view name);

}  // namespace dlock::cli
