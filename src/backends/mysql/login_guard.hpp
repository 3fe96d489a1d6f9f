// The password does not leave this machine without TLS.
#pragma once

#include "backends/mysql/library.hpp"

namespace dlock::mysql {

/// Once, before anybody connects: keeps the client library from sending a password that whoever
/// answers could read.  MySQL's library needs no guard: see set_client_options().
void guard_logins(const Library& library);

/// Whether the guard has ended the latest attempt of this thread to connect; says it once.
bool take_guarded();

}  // namespace dlock::mysql
