// From the text of a setting to what it means.  Each refuses, naming the setting, what means
// nothing.
#pragma once

#include <cstddef>

#include "cli/flags.hpp"
#include "core/settings.hpp"
#include "util/clock.hpp"

namespace dlock::cli {

/// 1, 0, true, false, yes, no.
bool to_bool(const Setting& setting);

/// How often a flag was given; elsewhere a number up to `most`, or a bool.
int to_count(const Setting& setting, int most);

/// In flag.range.
int to_number(const Setting& setting, const Flag& flag);

/// In flag.range, or zero or more.
Millis to_duration(const Setting& setting, const Flag& flag);

/// The index of the value in flag.choices.
std::size_t to_choice(const Setting& setting, const Flag& flag);

/// For what must not be empty.
const std::string& to_text(const Setting& setting);

/// For text that people are shown: short, UTF-8, no control characters.  May be empty.
const std::string& to_note(const Setting& setting);

/// Refuses what would mean nothing to any command.  The backend checks the rest.
void check_value(const Setting& setting, const Flag& flag);

/// The setting of a flag if it counts: a boolean that says yes, or any other value, unless its
/// rival was given in a higher layer.  Null if it does not.  Refuses rivals in the same layer.
const Setting* effective(const Settings& settings, const Flag& flag);

}  // namespace dlock::cli
