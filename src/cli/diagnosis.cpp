#include "cli/diagnosis.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <string_view>

#include "cli/build_version.hpp"
#include "cli/print_text.hpp"
#include "engine/exit_status.hpp"
#include "engine/outcome.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

constexpr std::array<std::string_view, 4> kLevels{"ok", "note", "warn", "FAIL"};
constexpr std::size_t kSeen = 30;  // the column of what was seen
constexpr std::size_t kWhy = 6;
constexpr std::size_t kSettings = 20;

std::string level_name(Severity level) {
  return std::string(kLevels[static_cast<std::size_t>(level)]);
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

// The file names of the client libraries among those that this process has loaded.
std::set<std::string> client_libraries() {
  std::set<std::string> out;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::string name = line.substr(line.rfind('/') + 1);
    for (const char* client :
         {"libhiredis", "libmariadb", "libmysqlclient", "libpq", "libssl", "libzookeeper"}) {
      if (name.starts_with(client)) out.insert(util::printable(name));
    }
  }
  return out;
}

std::string distribution() {
  constexpr std::string_view kName = "PRETTY_NAME=\"";
  std::ifstream release("/etc/os-release");
  for (std::string line; std::getline(release, line);) {
    if (line.starts_with(kName)) {
      return util::printable(line.substr(kName.size(), line.size() - kName.size() - 1));
    }
  }
  return "unknown distribution";
}

// Why it matters is said of the first server only.
std::string text_of(const Finding& finding, bool is_first, std::size_t width) {
  const std::string seen = (finding.server.empty() ? "" : util::printable(finding.server) + ": ") +
                           util::printable(finding.seen);
  std::string out = hanging(padded(level_name(finding.level), kWhy) + std::string(finding.name),
                            seen, 0, kSeen, width);
  if (is_first && !finding.why.empty()) out += wrap(finding.why, kWhy, width);
  if (!finding.fix.empty()) out += std::string(kWhy, ' ') + util::printable(finding.fix) + '\n';
  return out;
}

}  // namespace

// The status of an error of a server, if there is nothing else to say.
int Diagnosis::exit_status(bool is_strict) const {
  if (refused) return *refused;
  int out = 0;
  for (const Finding& finding : findings) {
    const bool counts =
        finding.level == Severity::fail || (is_strict && finding.level == Severity::warn);
    if (!counts) continue;
    if (!finding.error) return exit_status::kNo;
    if (out == 0) out = not_acquired({*finding.error, ""}, exit_status::kNo).exit_status;
  }
  return out;
}

std::string Diagnosis::text(std::size_t width, bool is_brief) const {
  std::string out;
  if (!is_brief) {
    for (const InForce& setting : settings) {
      out += hanging(setting.name, util::printable(setting.value) + "  (" + setting.source + ')', 0,
                     kSettings, width);
    }
    out += '\n';
  }
  std::array<unsigned, kLevels.size()> counts{};
  std::set<std::string_view> explained;
  for (const Finding& finding : findings) {
    ++counts.at(static_cast<std::size_t>(finding.level));
    if (is_brief && finding.level < Severity::warn) continue;
    const bool is_first = finding.why.empty() || explained.insert(finding.name).second;
    out += text_of(finding, is_first, width);
  }
  if (is_brief) return out;
  out += '\n';
  for (std::size_t i = kLevels.size(); i-- > 0;) {
    out += std::to_string(counts[i]) + ' ' + std::string(kLevels[i]) + (i > 0 ? ", " : "");
  }
  return out + "; man dlock-doctor explains each by its name\n";
}

Object Diagnosis::object() const {
  std::vector<Object> in_force;
  for (const InForce& one : settings) {
    in_force.push_back({{{"name", one.name}, {"value", one.value}, {"source", one.source}}});
  }
  std::vector<Object> found;
  const auto or_null = [](const std::string& text) { return text.empty() ? Cell() : Cell(text); };
  for (const Finding& one : findings) {
    found.push_back({{{"name", std::string(one.name)},
                      {"level", util::lower(level_name(one.level))},
                      {"server", or_null(one.server)},
                      {"seen", one.seen},
                      {"why", or_null(one.why)},
                      {"fix", or_null(one.fix)}}});
  }
  return Object{{{"backend", backend},
                 {"settings", {}, std::move(in_force)},
                 {"findings", {}, std::move(found)}}};
}

std::string this_system(const std::string& backends) {
  std::string out = "dlock " + std::string(build_version()) + " (" + backends + ')';
  for (const std::string& library : client_libraries()) out += ", " + library;
  utsname system{};
  if (::uname(&system) == 0) {
    out += std::string(", ") + system.sysname + ' ' + system.release + ' ' + system.machine;
  }
  return out + ", " + distribution();
}

}  // namespace dlock::cli
