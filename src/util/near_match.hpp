// "Did you mean ...?"
#pragma once

#include <span>
#include <string_view>

namespace dlock::util {

/// The one of `words` that `word` was most likely meant to be: with the fewest letters that are
/// missing, too many, wrong, or swapped with their neighbour (Damerau 1964), at most a third of its
/// letters; or the one that it is the beginning of.  Of equally near ones the first.  Empty: none.
std::string_view near_match(std::string_view word, std::span<const std::string_view> words);

}  // namespace dlock::util
