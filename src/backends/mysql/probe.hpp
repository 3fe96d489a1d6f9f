// Why nobody could be connected to, where the client library does not tell.
#pragma once

#include "core/url.hpp"
#include "util/clock.hpp"

namespace dlock::mysql {

/// The errno of an attempt to connect, ETIMEDOUT if nothing is heard until `deadline`; 0 if it
/// succeeds.
int probe(const HostPort& host, Deadline deadline);

}  // namespace dlock::mysql
