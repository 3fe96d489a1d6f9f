// The table of flags.  Options of the command line, variables of the environment, keys of the
// config file, help and completions all come from it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.hpp"
#include "core/config_file.hpp"

namespace dlock::cli {

enum class Group { lock, once, grant, command, look, id, backends, result, backend };

/// Where an option can be set, besides the command line: in the environment, and in the config
/// file.
enum class Said { everywhere, in_profiles, not_in_config, on_command_line };

/// The values that a shell offers for an option without a list of choices.
enum class Completes { nothing, files, backends, schemas, columns, keys };

/// A range of numbers. `words` is the text for messages; if it is empty, there is no range.
struct Range {
  std::int64_t low = 0;
  std::int64_t high = 0;
  std::string_view words = {};
};

struct Flag {
  std::string_view name;  // without its dashes
  char letter = 0;        // the short form; 0: there is none
  /// The type of the value.  A boolean and a count take no value on the command line.
  ValueKind kind = ValueKind::text;
  std::string_view value;       // how help calls it: DURATION
  std::string_view alone = {};  // of --export[=SHELL]: what it means without a value
  Group group = Group::backend;
  unsigned commands = 0;  // which take it: CommandIds
  bool hidden = false;    // not in help: the manual page has it
  Said said = Said::everywhere;
  /// The base of the names of the variable and the config key, if it is not `name`.
  std::string_view setting = {};
  /// The flag that cannot be combined with this one.
  std::string_view rival = {};
  std::array<std::string_view, 3> choices = {};  // all that the value may be; empty: anything
  Range range = {};                              // of a number, or of a duration in milliseconds
  Completes completes = Completes::nothing;
  std::string_view fallback = {};  // the default, as help prints it
  std::string_view brief;          // a phrase without full stop

  /// Whether a value must follow.
  bool takes_value() const {
    return kind != ValueKind::boolean && kind != ValueKind::count && alone.empty();
  }
  bool is_of(const Command& command) const { return (commands & command.id) != 0; }
  bool in_environment() const { return said != Said::on_command_line; }
  bool in_config() const { return said == Said::everywhere || said == Said::in_profiles; }
  bool repeats() const { return kind == ValueKind::list || kind == ValueKind::count; }
};

std::span<const Flag> flags();

/// The flag with this name.  A name that is not in the table is a bug.
const Flag& flag(std::string_view name);

/// `DLOCK_CONNECT_TIMEOUT`: the name that its variable has, or would have.
std::string variable_of(const Flag& flag);

/// All names of its variable.  There are two if `setting` differs from `name`: DLOCK_SERVERS,
/// DLOCK_SERVER.
std::vector<std::string> variables_of(const Flag& flag);

/// `connect_timeout`: the config key, in the same way.
std::string config_key_of(const Flag& flag);

/// The flag with this config key, as `connect_timeout`; null if there is none.
const Flag* find_config_key(std::string_view key);

/// The type of a config key, for read_config().  A profile may hold "url", but not "backend".
Result<ValueKind> config_kind(std::string_view key, bool in_profile);

/// The choices for the value as one text; empty if the value is free.
std::string choice_list(const Flag& flag, std::string_view separator);

}  // namespace dlock::cli
