// "This cannot be done as asked": misuse of the command line or a bad config file.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "core/settings.hpp"
#include "engine/exit_status.hpp"

namespace dlock::cli {

/// Thrown before anything is started, caught in app.cpp, which prints it and exits with the status.
class Refusal : public std::runtime_error {
 public:
  Refusal(int status, const std::string& message) : runtime_error(message), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

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
