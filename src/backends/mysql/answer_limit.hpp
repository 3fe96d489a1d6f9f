// The limit to what a server may send in answer to one text.
#pragma once

#include <mysql.h>

#include <cstddef>
#include <functional>

namespace dlock::mysql {

struct Library;

constexpr std::size_t kMostBytes = std::size_t{64} * 1024 * 1024;

/// To be called once.  From then on a connection is cut off if the server sends more than
/// kMostBytes in answer to one text.  With MySQL's library only the rows are counted (worker.cpp).
void limit_answers(const Library& library);

/// This thread asks next: its count starts again at 0.  With MariaDB's library, `on_first_read` is
/// called with the socket once the server has sent something.
void begin_answer(std::function<void(int socket)> on_first_read = {});

/// Whether the server has sent more than kMostBytes to this thread since.
bool answer_is_too_long();

/// Each later read and write of the library on this connection fails at once.
void cut_off(MYSQL* mysql);

}  // namespace dlock::mysql
