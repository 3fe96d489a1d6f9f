#include "core/secret.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "util/text.hpp"

namespace dlock {
namespace {

constexpr std::string_view kSchemeEnd = "://";
// To look at each of many URLs takes a time that grows with the square of the length.
constexpr std::size_t kLongestLookedAt = 8'192;

bool is_suspect(std::string_view text) {
  return text.find('@') != std::string_view::npos || text.find("pass") != std::string_view::npos;
}

bool url_holds_password(std::string_view text) {
  auto url = parse_url(text);
  return url ? holds_password(*url) : is_suspect(text);
}

// Where the scheme begins that ends at `end`.  The text before it may be `--backend=` or `-b`.
std::size_t scheme_before(std::string_view text, std::size_t end) {
  std::size_t begin = end;
  while (begin > 0 && (std::string_view("+-.").find(text[begin - 1]) != std::string_view::npos ||
                       std::isalnum(static_cast<unsigned char>(text[begin - 1])) != 0)) {
    --begin;
  }
  return std::min(text.find_first_not_of("+-.", begin), end);
}

}  // namespace

bool holds_password(const Url& url) {
  return !url.password.empty() || std::ranges::any_of(url.query, [](const auto& item) {
    const std::string& name = item.first;
    return name.find("pass") != std::string::npos && !name.ends_with("_file");
  });
}

bool mentions_password(std::string_view text) {
  auto at = text.find(kSchemeEnd);
  if (at != std::string_view::npos && text.size() > kLongestLookedAt) return is_suspect(text);
  while (at != std::string_view::npos) {
    const std::size_t begin = scheme_before(text, at);
    at = text.find(kSchemeEnd, at + 1);
    // A URL has commas between its hosts; it ends at one that another scheme follows, unless what
    // stands before that is no URL: then the comma is part of a password.
    const std::size_t next = at == std::string_view::npos ? 0 : scheme_before(text, at);
    const bool may_end = next > begin && text[next - 1] == ',';
    const std::string_view first = text.substr(begin, may_end ? next - 1 - begin : text.size());
    const bool ends = may_end && parse_url(first).has_value();
    if (url_holds_password(ends ? first : text.substr(begin))) return true;
  }
  return false;
}

bool may_be_bad_url(std::string_view text) {
  return may_hold_password(text.substr(0, text.find(kSchemeEnd)));
}

bool may_hold_password(std::string_view word) {
  const auto pass = std::min(word.find("pass"), word.size());
  return word.find('@') != std::string_view::npos || looks_like_url(word) ||
         word.find('=', pass) != std::string_view::npos;
}

std::string shown_word(const std::string& word) {
  return util::in_quotes(
      may_hold_password(word) ? word.substr(0, word.find_first_of(":@/?=")) + "..." : word, 60);
}

std::string shown_answer(std::string_view text, std::string_view secret) {
  constexpr std::size_t kBeginning = 8;
  const auto plain = [](std::string_view escaped) {
    std::string out(escaped);
    std::erase(out, '\\');
    return out;
  };
  const bool repeats = plain(text).find(plain(secret).substr(0, kBeginning)) != std::string::npos;
  return repeats && !secret.empty() ? "(not shown, since it may repeat the password)"
                                    : util::in_quotes(text, 200);
}

void hide_memory() { prctl(PR_SET_DUMPABLE, 0); }

}  // namespace dlock
