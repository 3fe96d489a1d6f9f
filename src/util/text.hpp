// Text from strangers: check it, encode it, show it safely.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace dlock::util {

bool is_utf8(std::string_view text);

/// True if valid UTF-8 `text` holds a control character: C0, DEL or C1.
bool has_control(std::string_view text);

/// Text that is safe for a terminal, a log or a table.  Control characters, invalid UTF-8, and
/// characters that reorder or hide text become escapes such as \x1b and \u202e.
std::string printable(std::string_view text);

/// JSON with the same meaning.  Characters that printable() escapes, but the JSON library does not,
/// are escaped.
std::string printable_json(std::string_view json);

/// printable(), in double quotes, cut to `most` bytes with a `...`.
std::string in_quotes(std::string_view text, std::size_t most = 300);

/// The same without the quotes.
std::string clipped(std::string_view text, std::size_t most);

/// The text as one word of sh, bash and similar shells.
std::string in_shell_quotes(std::string_view text);

/// As in_shell_quotes(), but without quotes if none are needed.
std::string in_shell(std::string_view text);

/// Every byte but A-Z a-z 0-9 `-` `_` and (unless it comes first) `.` becomes %XX.
std::string percent_encode(std::string_view text);

/// The reverse of percent_encode().  Accepts lower-case digits.  None if a `%` is not followed by
/// two hexadecimal digits.
std::optional<std::string> percent_decode(std::string_view text);

/// With a small letter at its beginning: what strerror(3) says, in the middle of a sentence.
std::string uncapitalized(std::string text);

/// Replaces A-Z by a-z.
std::string lower(std::string_view text);

/// Replaces a-z by A-Z.
std::string upper(std::string_view text);

/// The mode of a file as chmod(1) takes it: 0640.
std::string octal(mode_t mode);

/// Parses all of `text` as a number in [low, high].  A minus sign is accepted only if `low` is
/// negative.  None otherwise.
std::optional<long long> parse_int(std::string_view text, long long low, long long high);

}  // namespace dlock::util
