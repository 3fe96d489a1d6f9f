// How a connection to one server is made.
#pragma once

#include <memory>
#include <string>

#include "backends/postgres/library.hpp"
#include "backends/postgres/place.hpp"
#include "core/cancel.hpp"
#include "util/clock.hpp"

namespace dlock::postgres {

struct Hangup {
  const Library* library = nullptr;
  void operator()(PGconn* line) const { library->PQfinish(line); }
};
using Line = std::unique_ptr<PGconn, Hangup>;

/// Errc::unreachable, denied, invalid (no such database), unsupported (too old), cancelled.  The
/// line does not block, and is in pipeline mode.  `place` is told the user whom libpq has found.
Result<Line> dial(const Library& library, Place& place, const HostPort& host, Deadline deadline,
                  Cancel cancel);

}  // namespace dlock::postgres
