// "This cannot be done as asked": misuse of the command line or a bad config file.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "core/settings.hpp"
#include "core/url.hpp"
#include "engine/exit_status.hpp"
#include "util/text.hpp"

namespace dlock::cli {

/// Thrown before anything is started, caught in app.cpp, which prints it and exits with the status.
class Refusal : public std::runtime_error {
 public:
  Refusal(int status, const std::string& message) : runtime_error(message), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

/// Whether a word of the user's may be a URL in the wrong place, with a password.
inline bool may_hold_password(std::string_view word) {
  return word.find('@') != std::string_view::npos || looks_like_url(word);
}

/// A word of the user's, quoted for a message: nothing is shown from where a password could begin.
inline std::string shown_word(const std::string& word) {
  return util::in_quotes(
      may_hold_password(word) ? word.substr(0, word.find_first_of(":@/")) + "..." : word, 60);
}

[[noreturn]] inline void refuse_usage(const std::string& message) {
  throw Refusal(exit_status::kUsage, message);
}

[[noreturn]] inline void refuse_config(const std::string& message) {
  throw Refusal(exit_status::kConfig, message);
}

/// Blames the setting: its place first, then what is wrong with it.
[[noreturn]] inline void refuse(const Setting& setting, const std::string& why) {
  throw Refusal(setting.from_file() ? exit_status::kConfig : exit_status::kUsage,
                setting.where + ": " + why);
}

}  // namespace dlock::cli
