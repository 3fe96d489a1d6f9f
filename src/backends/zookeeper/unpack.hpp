// What the client library unpacks from the answers of a server, checked.
#pragma once

#include <cstddef>
#include <optional>

namespace dlock::zookeeper {

struct Unpacked {
  unsigned answers = 0;  // whole ones
  bool damaged = false;  // one of them
};

/// What has been unpacked in this thread since the last call.
Unpacked take_unpacked();

/// To be called before each zookeeper_process(), and with 0 after it.  `parts`: of the request that
/// the next answer is of, 0 if it has none; std::nullopt if there is no request.
void expect_answer(std::optional<std::size_t> parts);

/// For the functions that the library calls with an answer: whether it must not be used.
bool answer_is_damaged();
/// For the same functions: an answer that could be unpacked says what no server says.
void report_damage();

}  // namespace dlock::zookeeper
