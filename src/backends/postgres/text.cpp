#include "backends/postgres/text.hpp"

#include <algorithm>

namespace dlock::postgres {
namespace {

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

std::string literal(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "E'";
  for (const char c : bytes) {
    if (is_plain(c)) {
      text += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      text += "\\x";
      text += kDigits[byte >> 4U];
      text += kDigits[byte & 15U];
    }
  }
  return text += '\'';
}

std::vector<std::string> statements_of(std::string_view text) {
  constexpr std::string_view kBlock = "$$";
  std::vector<std::string> out;
  while (!text.empty()) {
    std::size_t end = text.find(';');
    if (const auto block = text.find(kBlock); block < end) {
      end = text.find(';', text.find(kBlock, block + kBlock.size()));
    }
    std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    one.remove_prefix(std::min(one.find_first_not_of(" \n"), one.size()));
    if (!one.empty()) out.emplace_back(one);
  }
  return out;
}

std::string outline(std::string_view text) {
  constexpr std::size_t kMost = 40;
  std::string out;
  for (const std::string& one : statements_of(text)) {
    out += (out.empty() ? "" : "; ") + one.substr(0, kMost);
    if (one.size() > kMost) out += "...";
  }
  std::replace(out.begin(), out.end(), '\n', ' ');
  return out;
}

}  // namespace dlock::postgres
