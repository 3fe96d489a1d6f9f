#include "util/near_match.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace dlock::util {
namespace {

// Optimal string alignment: https://en.wikipedia.org/wiki/Damerau-Levenshtein_distance
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> now(b.size() + 1, i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] =
          std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        now[j] = std::min(now[j], before_last[j - 2] + 1);
      }
    }
    before_last = std::exchange(last, std::move(now));
  }
  return last[b.size()];
}

}  // namespace

std::string_view near_match(std::string_view word, std::span<const std::string_view> words) {
  constexpr std::size_t kLongest = 64;
  constexpr std::size_t kLeastBeginning = 3;
  std::string_view best;
  if (word.size() > kLongest) return best;
  std::size_t least = std::max<std::size_t>(word.size() / 3, 1) + 1;
  for (const std::string_view candidate : words) {
    const bool begins = word.size() >= kLeastBeginning && candidate.starts_with(word);
    const std::size_t far = begins ? 1 : distance(word, candidate);
    if (far >= least || far >= word.size()) continue;  // no letter in common
    least = far;
    best = candidate;
  }
  return best;
}

}  // namespace dlock::util
