#include "util/host.hpp"

#include <netdb.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <vector>

namespace dlock::util {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::string short_host(std::string_view name) {
  const bool is_address = name.find_first_not_of("0123456789.") == std::string_view::npos;
  return std::string(is_address ? name : name.substr(0, name.find('.')));
}

// Within a machine both ends have the same address, or the other one has one of 127.0.0.0/8.
Ends ends_of(int socket) {
  const auto host = [socket](auto* name_of) {
    sockaddr_storage address{};
    auto* its = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    std::array<char, NI_MAXHOST> text{};
    if (name_of(socket, its, &size) == 0 && address.ss_family != AF_UNIX) {
      ::getnameinfo(its, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
    }
    return std::string(text.data());
  };
  return {host(::getsockname), host(::getpeername)};
}

std::string user_name() { return user_name(geteuid()); }

std::string user_name(uid_t uid) {
  if (uid == 0) return "root";  // spares reading the password file in the commonest case
  std::vector<char> buffer(16'384);
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    return found->pw_name;
  }
  return std::to_string(uid);
}

std::uint64_t utc_now_ms() { return utc_now_us() / 1'000; }

std::uint64_t utc_now_us() {
  using namespace std::chrono;
  const auto now = floor<microseconds>(system_clock::now()).time_since_epoch().count();
  return static_cast<std::uint64_t>(std::max<microseconds::rep>(now, 0));
}

std::string utc_now() { return utc_in(Millis{0}); }

std::string utc_in(Millis from_now) {
  // Not gmtime_r: glibc's reads the time zone file, even for UTC.
  using namespace std::chrono;
  if (from_now > years{1'000} || from_now < -years{1'000}) return "";
  const auto now = floor<milliseconds>(system_clock::now() + from_now);
  const auto day = floor<days>(now);
  const year_month_day date(day);
  const hh_mm_ss time(now - day);
  std::array<char, 64> out{};
  std::snprintf(out.data(), out.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(time.hours().count()),
                static_cast<int>(time.minutes().count()), static_cast<int>(time.seconds().count()),
                static_cast<int>(time.subseconds().count()));
  return out.data();
}

std::string local_in(Millis from_now) {
  using namespace std::chrono;
  if (from_now > years{1'000} || from_now < -years{1'000}) return "";
  const std::time_t at = system_clock::to_time_t(floor<seconds>(system_clock::now() + from_now));
  std::tm parts{};
  std::array<char, 64> out{};
  if (localtime_r(&at, &parts) == nullptr) return "";
  return {out.data(), std::strftime(out.data(), out.size(), "%a %Y-%m-%d %H:%M:%S %Z", &parts)};
}

}  // namespace dlock::util
