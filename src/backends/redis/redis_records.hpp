// Records of one server, each a STRING: when it was written, in ms of the server's clock, a space,
// and its text.  On several servers there are none: a majority that has a record today need not
// have it any more when it has restarted.
#pragma once

#include <memory>
#include <string>

#include "backends/redis/node.hpp"
#include "core/records.hpp"

namespace dlock::redis {

/// `node` must outlive it.  The server deletes marks itself when their time is over.
std::unique_ptr<Records> make_records(Node& node);

}  // namespace dlock::redis
