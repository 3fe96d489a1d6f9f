// The commands of dlock-proxy.
#pragma once

#include <string>

#include "support/proxy/proxy.hpp"

namespace dlock::test {

/// Carries out one line, and returns "ok", a number, or "error: ...".  See proxy.hpp for what they
/// do:
///     delay MS   delay-requests MS   hold   release   chunk BYTES
///     drop   blackhole   refuse   cut [fin]   lose-reply-to WORD [COUNT|always [SKIP]]   pass
///     connections   open   lost   bytes
std::string control(Proxy& proxy, const std::string& line);

}  // namespace dlock::test
