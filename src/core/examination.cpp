#include "core/examination.hpp"

#include <array>
#include <cstdio>

namespace dlock {

std::string in_ms(Clock::duration time) {
  std::array<char, 32> out{};
  std::snprintf(out.data(), out.size(), "%.2f ms",
                std::chrono::duration<double, std::milli>(time).count());
  return out.data();
}

Finding cannot_look(std::string_view name, const std::string& server, const Error& error) {
  const bool is_named = error.message.starts_with(server + ": ");
  const bool is_lasting = error.code == Errc::invalid || error.code == Errc::unsupported;
  const char* const status = error.code == Errc::denied ? "77" : is_lasting ? "64" : "69";
  return {.name = name,
          .level = Severity::fail,
          .server = server,
          .seen = error.message.substr(is_named ? server.size() + 2 : 0),
          .why = "dlock run ends with status " + std::string(status) + '.',
          .error = error.code};
}

}  // namespace dlock
