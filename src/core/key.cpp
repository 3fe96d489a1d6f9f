#include "core/key.hpp"

#include <string>

#include "util/text.hpp"

namespace dlock {

Result<void> check_key(std::string_view key, std::string_view what) {
  const auto bad = [&](std::string_view why) {
    return Error{Errc::invalid,
                 std::string(what) + ' ' + util::in_quotes(key, 60) + ": " + std::string(why)};
  };
  if (key.empty()) return Error{Errc::invalid, "the " + std::string(what) + " is empty"};
  if (key.size() > kMaxKeyLength) {
    return bad("is " + std::to_string(key.size()) + " bytes long; the most is " +
               std::to_string(kMaxKeyLength));
  }
  if (!util::is_utf8(key)) return bad("is not valid UTF-8");
  if (util::has_control(key)) return bad("holds a control character");
  return {};
}

}  // namespace dlock
