// What is sent before a login is sure to be encrypted, and what is not.
#pragma once

#include <string>

#include "backends/mysql/library.hpp"

namespace dlock::mysql {

/// Once, before anybody connects: keeps the client library from sending a password that somebody
/// who answers in place of the server could read.
void guard_logins(const Library& library);

/// The methods of login that are guarded: ",mysql_native_password,...".  The library must not use
/// one of these that could not be guarded.
std::string guarded_logins();

/// The method that an attempt to connect must begin with if it needs TLS.
inline constexpr const char* kFirstLogin = "mysql_native_password";

/// Whether the next attempts of this thread to connect need TLS.  Then a server that greets without
/// it is told nothing, not even the name of the user.
void require_tls(bool required);

enum class Refused { nothing, no_tls, plain_password };

/// Why the guard has ended the latest attempt of this thread to connect; says it once.
Refused take_refused();

}  // namespace dlock::mysql
