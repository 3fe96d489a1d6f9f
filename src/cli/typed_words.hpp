// A command line that a user is still typing.  Unlike parse(), this accepts everything.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "cli/parse.hpp"

namespace dlock::cli {

struct TypedWords {
  /// What the words before the cursor say.  Its command is null while that is being typed, and for
  /// an unknown command.
  Invocation said;
  bool is_command = false;      // the word under the cursor is the command
  bool has_mark = false;        // "--" is before the cursor
  std::size_t command_at = 0;   // which word begins the user's own command, from 1; 0: none does
  const Flag* asked = nullptr;  // the word under the cursor is the value of this option
  std::string head;             // its part before the value: "--backend=" or "-b"
  std::string text;             // its rest: a candidate begins with this
};

/// `words` are those behind `dlock`, up to the one under the cursor, which may be empty.
TypedWords read_typed_words(std::span<const std::string> words);

}  // namespace dlock::cli
