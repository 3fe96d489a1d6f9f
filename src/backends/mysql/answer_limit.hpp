// The limit to what a server may send in answer to one text.
#pragma once

#include <mysql.h>

#include <cstddef>

namespace dlock::mysql {

struct Library;

constexpr std::size_t kMostBytes = std::size_t{64} * 1024 * 1024;

/// To be called once.  From then on a connection is cut off if the server sends more than
/// kMostBytes in answer to one text.  With MySQL's library only the rows are counted (worker.cpp).
void limit_answers(const Library& library);

/// This thread asks next: its count starts again at 0.
void begin_answer();

/// Whether the server has sent more than kMostBytes to this thread since.
bool answer_is_too_long();

/// Each later read and write of the library on this connection fails at once.
void cut_off(MYSQL* mysql);

}  // namespace dlock::mysql
