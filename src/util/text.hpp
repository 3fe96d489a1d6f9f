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

/// What a terminal, a log or a table may be given: control characters, invalid UTF-8 and the
/// characters that reorder or hide text become escapes like \x1b and \u202e.
std::string printable(std::string_view text);

/// JSON that means the same, with escapes for what the library that prints it leaves as it is and
/// printable() does not.
std::string printable_json(std::string_view json);

/// printable(), in double quotes, cut to `most` bytes with a `...`.
std::string in_quotes(std::string_view text, std::size_t most = 300);

/// The same without the quotes.
std::string clipped(std::string_view text, std::size_t most);

/// As one word of sh, bash and the like.
std::string in_shell_quotes(std::string_view text);

/// The same for a person to paste: without quotes where it needs none.
std::string in_shell(std::string_view text);

/// Every byte but A-Z a-z 0-9 `-` `_` and (unless it comes first) `.` becomes %XX.
std::string percent_encode(std::string_view text);

/// The reverse, and also takes lower-case hex; none if a `%` is not followed by two hex digits.
std::optional<std::string> percent_decode(std::string_view text);

/// A-Z become a-z.
std::string lower(std::string_view text);

/// a-z become A-Z.
std::string upper(std::string_view text);

/// The mode of a file as chmod(1) takes it: 0640.
std::string octal(mode_t mode);

/// The whole of `text` as a number in [low, high]: digits, behind a - only where `low` is negative.
/// None otherwise.
std::optional<long long> parse_int(std::string_view text, long long low, long long high);

}  // namespace dlock::util
