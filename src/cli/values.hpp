// Converts the text of a setting to its value.  Each function refuses an invalid text and names the
// setting.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "cli/flags.hpp"
#include "core/settings.hpp"
#include "util/clock.hpp"

namespace dlock::cli {

/// 1, 0, true, false, yes, no.
bool to_bool(const Setting& setting);

/// The number of times that a flag was given.  In the environment and the config file: a number up
/// to `most`, or a boolean.
int to_count(const Setting& setting, int most);

/// A number in flag.range.
int to_number(const Setting& setting, const Flag& flag);

/// A duration in flag.range; without a range, zero or more.
Millis to_duration(const Setting& setting, const Flag& flag);

/// The index of the value in flag.choices.
std::size_t to_choice(const Setting& setting, const Flag& flag);

/// A text that must not be empty.
const std::string& to_text(const Setting& setting);

/// A text that is shown to people: short, UTF-8, no control characters.  May be empty.
const std::string& to_note(const Setting& setting);

/// What a list consists of; commas separate it, too.
std::vector<std::string_view> items_of(const Setting& setting);

/// Refuses a value that is invalid for every command.  The backend checks the rest.
void check_value(const Setting& setting, const Flag& flag);

/// The setting of a flag if it is in force; otherwise null.  A boolean that is false is not in
/// force, nor is a setting whose rival is set in a higher layer.  Refuses two rivals in the same
/// layer.
const Setting* effective(const Settings& settings, const Flag& flag);

}  // namespace dlock::cli
