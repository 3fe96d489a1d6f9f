#include "util/width.hpp"

#include <algorithm>
#include <clocale>
#include <cwchar>

namespace dlock::util {
namespace {

// newlocale(3) opens and maps files, which would cost more than all else in a long table.
locale_t utf8_locale() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return locale;
}

// wcwidth(3) goes by the locale of the thread; that of the user may know ASCII only.
class Utf8Locale {
 public:
  Utf8Locale() {
    if (utf8_locale() != nullptr) before_ = uselocale(utf8_locale());
  }
  ~Utf8Locale() {
    if (before_ != nullptr) uselocale(before_);
  }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  locale_t before_ = nullptr;
};

// Takes one character off the front of `text`, and returns its width.
std::size_t take_one(std::string_view& text) {
  wchar_t c = 0;
  std::mbstate_t state{};
  const std::size_t length = std::mbrtowc(&c, text.data(), text.size(), &state);
  const bool understood = length != 0 && length <= text.size();
  text.remove_prefix(understood ? length : 1);
  const int width = understood ? wcwidth(c) : 1;
  return width < 0 ? 1 : static_cast<std::size_t>(width);
}

}  // namespace

std::size_t display_width(std::string_view text) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::all_of(text.begin(), text.end(), is_ascii)) return text.size();
  const Utf8Locale locale;
  std::size_t width = 0;
  while (!text.empty()) width += take_one(text);
  return width;
}

std::string cut_to_width(std::string_view text, std::size_t columns) {
  if (display_width(text) <= columns) return std::string(text);
  constexpr std::string_view kDots = "\u2026";
  const Utf8Locale locale;
  if (columns == 0) return "";
  const std::size_t room = columns - 1;
  std::string_view rest = text;
  for (std::size_t width = 0; !rest.empty();) {
    std::string_view next = rest;
    width += take_one(next);
    if (width > room) break;
    rest = next;
  }
  return std::string(text.substr(0, text.size() - rest.size())) + std::string(kDots);
}

}  // namespace dlock::util
