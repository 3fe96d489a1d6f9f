// What the client library is told before it connects.
#pragma once

#include <cstddef>

#include "backends/mysql/library.hpp"
#include "backends/mysql/place.hpp"

namespace dlock::mysql {

/// How to connect to the place, whom to trust there, how to log in and how long each may take.
/// `most` is what a packet may have, in bytes.  Errc::invalid if there is no CA certificate to be
/// read, Errc::denied if others can read the key, Errc::unsupported if the library has no TLS.
Result<void> set_client_options(const Library& library, MYSQL* mysql, const Place& place,
                                std::size_t most);

}  // namespace dlock::mysql
