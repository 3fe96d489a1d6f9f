// Refuses a wrong command line or a wrong config file.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "core/settings.hpp"
#include "engine/exit_status.hpp"

namespace dlock::cli {

/// Thrown before anything is started. app.cpp prints the message and exits with the status.
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

/// Refuses a setting: the message names its place, then the fault.
[[noreturn]] inline void refuse(const Setting& setting, const std::string& why) {
  throw Refusal(setting.from_file() ? exit_status::kConfig : exit_status::kUsage,
                setting.where + ": " + why);
}

}  // namespace dlock::cli
