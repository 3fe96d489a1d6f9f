#include "backends/mysql/sql.hpp"

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

}  // namespace dlock::mysql
