// Persistent nodes beside those of the locks.
#pragma once

#include <memory>
#include <string>

#include "backends/zookeeper/looking_session.hpp"
#include "core/records.hpp"

namespace dlock::zookeeper {

/// `session` must outlive it.
std::unique_ptr<Records> make_records(LookingSession& session);

std::string record_path(const Place& place, const RecordName& name);

std::string marks_folder(const Place& place);
/// A node beside the marks that dlock makes with the first of them.
std::string marks_clock(const Place& place);

}  // namespace dlock::zookeeper
