// Splits argv into options and operands.  Their meaning is checked elsewhere.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/flags.hpp"

namespace dlock::cli {

struct Invocation {
  struct Given {
    const Flag* flag;
    std::vector<std::string> values;  // one for each time it was given; "true" for a flag alone
  };

  const Command* command = nullptr;
  std::vector<Given> flags;           // only those that were given
  std::vector<std::string> operands;  // `run` in `dlock help run`
  std::vector<std::string> wrapped;   // what stands behind the first "--", byte by byte

  bool has(std::string_view name) const;
};

/// The option of the command with this letter, or with this name; null if there is none.
const Flag* flag_with(char letter, const Command& command);
const Flag* flag_named(std::string_view name, const Command& command);

/// Parses the arguments behind `dlock`.  Throws Refusal, or CLI::ParseError if the last argument
/// before the first "--" is an option without its value.
Invocation parse(std::span<char* const> arguments);

}  // namespace dlock::cli
