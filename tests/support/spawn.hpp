// Servers as child processes.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace dlock::test {

/// Where `program` is on PATH; empty if it is not installed.
std::string find_program(const std::string& program);

/// Starts argv[0], a path, with `environment` ("NAME=value") added to ours, its stdin from
/// /dev/null and its output appended to the file `output`.  It inherits no other descriptor, and is
/// killed when this process ends, however that ends.  May be called by any thread; the thread
/// may end.  Throws if there can be no process; a program that cannot be run exits with 127.
pid_t spawn(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
            const std::string& output);

/// Runs it, by spawn(), until it ends: what it writes.  Throws if it fails.
std::string outcome_of(const std::vector<std::string>& argv);

}  // namespace dlock::test
