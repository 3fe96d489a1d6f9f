#include "backends/mysql/sql.hpp"

#include <algorithm>

namespace dlock::mysql {

std::string literal(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "X'";
  text.reserve(2 * bytes.size() + 3);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text += '\'';
}

std::string outline(std::string_view statements) {
  constexpr std::size_t kMost = 40;
  std::string out;
  while (!statements.empty()) {
    const std::size_t end = std::min(statements.find(';'), statements.size());
    std::string_view one = statements.substr(0, end);
    statements.remove_prefix(std::min(end + 1, statements.size()));
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    if (one.empty()) continue;
    out += (out.empty() ? "" : "; ") + std::string(one.substr(0, kMost));
    if (one.size() > kMost) out += "...";
  }
  std::replace(out.begin(), out.end(), '\n', ' ');
  return out;
}

}  // namespace dlock::mysql
