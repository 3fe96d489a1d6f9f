// A backend that `dlock watch` looks at, again and again.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/lock_changes.hpp"
#include "cli/lock_service.hpp"
#include "core/backend.hpp"

namespace dlock::cli {

/// The first four members are those of the thread that looks, while a look is under way.
struct WatchedPlace {
  std::unique_ptr<LockService> service;  // null: its settings were refused
  std::unique_ptr<Backend> backend;
  Result<Listing> found = Listing();
  Millis took{0};

  std::string profile;          // with --all
  Deadline due = Clock::now();  // of the next look; kNever: a look is under way
  Deadline asked = due;         // when the first look began that was not answered
  std::string why;              // why the last look was not answered
  std::optional<Deadline> answered;
  std::string location;
  Millis interval{0};
  std::vector<LockInfo> before;
  std::vector<LockInfo> now;
  std::vector<ChangedRow> rows;  // of both
};

}  // namespace dlock::cli
