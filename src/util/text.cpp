#include "util/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string>

namespace dlock::util {
namespace {

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t length = 0;  // 0: the bytes are no UTF-8
};

// Well-formed byte sequences as in the Unicode standard, table 3-7.
CodePoint decode_one(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto follows = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xC0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first >= 0xC2 && first <= 0xDF && follows(1)) {
    return {(first & 0x1Fu) << 6 | (byte(1) & 0x3Fu), 2};
  }
  if (first >= 0xE0 && first <= 0xEF && follows(1) && follows(2)) {
    const std::uint32_t value = (first & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
    const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
    return {value, value >= 0x800 && !surrogate ? 3u : 0u};
  }
  if (first >= 0xF0 && first <= 0xF4 && follows(1) && follows(2) && follows(3)) {
    const std::uint32_t value = (first & 0x07u) << 18 | (byte(1) & 0x3Fu) << 12 |
                                (byte(2) & 0x3Fu) << 6 | (byte(3) & 0x3Fu);
    return {value, value >= 0x10000 && value <= 0x10FFFF ? 4u : 0u};
  }
  return {};
}

bool is_control(std::uint32_t c) { return c < 0x20 || (c >= 0x7F && c < 0xA0); }

// Characters that change the direction of the following text, or are invisible.
bool is_deceptive(std::uint32_t c) {
  return c == 0x00AD || c == 0x061C || (c >= 0x200B && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF ||
         (c >= 0xE0000 && c <= 0xE007F);
}

std::string escaped(const char* format, unsigned value) {
  std::array<char, 16> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, value);
  return buffer.data();
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const CodePoint point = decode_one(text);
    if (point.length == 0) return false;
    text.remove_prefix(point.length);
  }
  return true;
}

bool has_control(std::string_view text) {
  while (!text.empty()) {
    const CodePoint point = decode_one(text);
    if (is_control(point.value)) return true;
    text.remove_prefix(std::max<std::size_t>(point.length, 1));
  }
  return false;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint point = decode_one(text);
    const std::size_t length = std::max<std::size_t>(point.length, 1);
    if (point.length == 0 || point.value == 0x7F || point.value < 0x20) {
      out += escaped("\\x%02x", static_cast<unsigned char>(text[0]));
    } else if (is_control(point.value) || is_deceptive(point.value)) {
      out += escaped("\\u%04x", point.value);
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  return out;
}

// These characters can occur in strings only.
std::string printable_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const CodePoint point = decode_one(json);
    const std::size_t length = std::max<std::size_t>(point.length, 1);
    const bool shown =
        point.value < 0x7F || !(is_control(point.value) || is_deceptive(point.value));
    if (shown) {
      out.append(json.substr(0, length));
    } else if (point.value < 0x10000) {
      out += escaped("\\u%04x", point.value);
    } else {
      out += escaped("\\u%04x", 0xD800 + ((point.value - 0x10000) >> 10U));
      out += escaped("\\u%04x", 0xDC00 + (point.value & 0x3FFU));
    }
    json.remove_prefix(length);
  }
  return out;
}

std::string in_quotes(std::string_view text, std::size_t most) {
  std::string_view shown = text;
  if (text.size() > most) {
    shown = text.substr(0, most);
    while (!shown.empty() && (static_cast<unsigned char>(text[shown.size()]) & 0xC0) == 0x80) {
      shown.remove_suffix(1);
    }
  }
  return '"' + printable(shown) + (shown.size() < text.size() ? "...\"" : "\"");
}

std::string clipped(std::string_view text, std::size_t most) {
  const std::string quoted = in_quotes(text, most);
  return quoted.substr(1, quoted.size() - 2);
}

std::string in_shell_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + '\'';
}

std::string in_shell(std::string_view text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./:@%+=,").find(c) != std::string_view::npos;
  };
  const bool all = !text.empty() && std::all_of(text.begin(), text.end(), is_plain);
  return all ? std::string(text) : in_shell_quotes(printable(text));
}

std::string percent_encode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || (c == '.' && i > 0);
    out += plain ? std::string(1, c) : escaped("%%%02X", static_cast<unsigned char>(c));
  }
  return out;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]);
    const int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

std::string uncapitalized(std::string text) {
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z') {
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  }
  return text;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  return out;
}

std::string octal(mode_t mode) { return escaped("%04o", mode & 07777U); }

std::optional<long long> parse_int(std::string_view text, long long low, long long high) {
  if (low >= 0 && text.starts_with('-')) return std::nullopt;  // "-0"
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (value < low || value > high) return std::nullopt;
  return value;
}

}  // namespace dlock::util
