#include "backends/redis/openssl.hpp"

#include <string>

namespace dlock::redis {
namespace {

// The one whose headers we have; another may have other structures.
#if OPENSSL_VERSION_NUMBER >= 0x30000000L
#define DLOCK_TEXT_OF(number) #number
#define DLOCK_VALUE_OF(name) DLOCK_TEXT_OF(name)
constexpr const char* kLibrary = "libssl.so." DLOCK_VALUE_OF(OPENSSL_SHLIB_VERSION);
#else
constexpr const char* kLibrary = "libssl.so.1.1";
#endif

Error unusable(const std::string& why) {
  return {Errc::unreachable, std::string("TLS needs ") + kLibrary + " of OpenSSL: " + why};
}

Result<OpenSsl> load() {
  OpenSsl out(kLibrary);
  if (out.missing()) return unusable(*out.missing());
  // A thread may still be at work when the process ends: nothing must be torn down under it.
  out.OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr);
  return out;
}

}  // namespace

Result<const OpenSsl*> load_openssl() {
  static const Result<OpenSsl> library = load();
  if (!library) return library.error();
  return &library.value();
}

}  // namespace dlock::redis
