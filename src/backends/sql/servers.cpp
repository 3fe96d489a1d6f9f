#include "backends/sql/servers.hpp"

#include <fcntl.h>

#include <array>
#include <mutex>
#include <set>

#include "core/secret.hpp"
#include "util/duration.hpp"
#include "util/fd.hpp"
#include "util/host.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::sql {
namespace {

// The bundles of Debian, of Fedora and of SUSE.
constexpr std::array<const char*, 3> kTrusted{"/etc/ssl/certs/ca-certificates.crt",
                                              "/etc/pki/tls/certs/ca-bundle.crt",
                                              "/etc/ssl/ca-bundle.pem"};

// In this process.
bool is_new(const std::string& server) {
  static std::mutex guard;
  static auto& known = *new std::set<std::string>;  // threads may come here while the process exits
  const std::lock_guard lock(guard);
  return known.insert(server).second;
}

}  // namespace

Error merged(const std::vector<Error>& failures) {
  if (failures.size() == 1) return failures.front();
  Error out{failures.front().code, ""};
  for (const Error& failure : failures) {
    if (failure.code != out.code) out.code = Errc::unreachable;
    out.is_full = out.is_full || failure.is_full;
    out.message += (out.message.empty() ? "" : "; ") + failure.message;
  }
  return out;
}

std::string within(Deadline start, Deadline deadline) {
  const auto given = remaining(deadline, start).count();
  const auto step = given < 1'000 ? 10 : 100;
  const Millis rounded{(given + step - 1) / step * step};
  return rounded == Millis::zero() ? " in time" : " within " + util::format_duration(rounded);
}

std::string shown_text(std::string_view text, std::string_view password) {
  while (text.ends_with('\n') || text.ends_with(' ')) text.remove_suffix(1);
  const std::string out = shown_answer(text, password);
  return out.substr(1, out.size() - 2);
}

std::string filled(std::string_view says, const std::string& user, const std::string& database,
                   const std::string& prefix) {
  std::string out;
  for (std::size_t i = 0; i < says.size(); ++i) {
    if (says[i] != '%') {
      out += says[i];
    } else if (says[++i] == 'p') {
      out += prefix;
    } else {
      out += util::in_quotes(says[i] == 'u' ? user : database);
    }
  }
  return out;
}

std::string trusted_cas() {
  for (const char* path : kTrusted) {
    if (Fd(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)).get() >= 0) return path;
  }
  return "";
}

void warn_without_tls(const std::string& server, int socket, const std::string& advice) {
  if (!util::ends_of(socket).leaves_machine() || !is_new(server)) return;
  util::log(util::Level::warning,
            server + " has no TLS: what is said can be read and changed on the way; " + advice);
}

}  // namespace dlock::sql
