// The library sets SIGPIPE to be ignored when it is initialized, for all of the process, and exec
// would hand that down to the job: what was there is put back.  Our threads block SIGPIPE instead.
#include "backends/mysql/library.hpp"

#include <signal.h>

#include <mutex>
#include <string>

#include "backends/mysql/answer_limit.hpp"
#include "backends/mysql/login_guard.hpp"

namespace dlock::mysql {
namespace {

// The one whose headers we have; another may have other structures.
constexpr const char* kLibrary = DLOCK_MYSQL_SONAME;

Error unusable(const std::string& why) {
  return {Errc::unsupported, std::string("the mysql backends need the client library ") + kLibrary +
                                 " (in Debian the package " + DLOCK_MYSQL_PACKAGE + "): " + why};
}

Result<Library> load() {
  Library out(kLibrary);
  if (out.missing()) return unusable(*out.missing());
  struct sigaction before {};
  ::sigaction(SIGPIPE, nullptr, &before);
  const int status = out.mysql_server_init(0, nullptr, nullptr);
  ::sigaction(SIGPIPE, &before, nullptr);
  if (status != 0) return unusable("it cannot be initialized");
  return out;
}

}  // namespace

Result<const Library*> load_library() {
  static const Result<Library> library = load();
  if (!library) return library.error();
  static std::once_flag guarded;
  std::call_once(guarded, [] {
    limit_answers(library.value());
    guard_logins(library.value());
  });
  return &library.value();
}

}  // namespace dlock::mysql
