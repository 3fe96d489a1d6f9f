// The password does not leave this machine without TLS.
#pragma once

#include <string>

#include "backends/mysql/library.hpp"

namespace dlock::mysql {

/// Once, before anybody connects: keeps the client library from sending a password that somebody
/// who answers in place of the server could read.
void guard_logins(const Library& library);

/// The methods of login that are guarded: ",caching_sha2_password,...".  The library must not use
/// one that could not be guarded.
std::string guarded_logins();

/// Whether the guard has ended the latest attempt of this thread to connect; says it once.
bool take_guarded();

}  // namespace dlock::mysql
