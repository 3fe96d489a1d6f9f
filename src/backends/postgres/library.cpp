#include "backends/postgres/library.hpp"

#include <string>

namespace dlock::postgres {
namespace {

constexpr const char* kLibrary = DLOCK_POSTGRES_SONAME;

}  // namespace

Result<const Library*> load_library() {
  static const Library library(kLibrary);
  if (!library.missing()) return &library;
  return Error{
      Errc::unsupported,
      std::string("the postgres backends need the client library ") + kLibrary +
          ", of PostgreSQL 14 or later (in Debian the package libpq5): " + *library.missing()};
}

}  // namespace dlock::postgres
