// Records in a table of their own.
#pragma once

#include <memory>

#include "backends/sql/conversation.hpp"
#include "core/records.hpp"

namespace dlock::sql {

/// The marks of one method, and the numbers of all.  `conversation` must outlive it.
std::unique_ptr<Records> make_records(Conversation& conversation);

}  // namespace dlock::sql
