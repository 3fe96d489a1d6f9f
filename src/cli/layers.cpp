#include "cli/layers.hpp"

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "cli/refusal.hpp"
#include "cli/values.hpp"
#include "util/log.hpp"

namespace dlock::cli {
namespace {

std::string variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

std::string users_config() {
  // The XDG base directory specification says that a relative XDG_CONFIG_HOME is ignored.
  const std::string xdg = variable("XDG_CONFIG_HOME");
  if (xdg.starts_with('/')) return xdg + "/dlock/config.json";
  const std::string home = variable("HOME");
  return home.starts_with('/') ? home + "/.config/dlock/config.json" : "";
}

// Whether a directory above the file may not be searched.  This happens if HOME is that of root,
// but the uid is not.
bool is_out_of_reach(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) != 0 && errno == EACCES;
}

}  // namespace

Setting setting_of(const ConfigEntry& entry) {
  const Layer layer = !entry.profile.empty() ? Layer::profile
                      : entry.is_added       ? Layer::machine
                                             : Layer::file;
  return {entry.values, layer, entry.where + ": " + entry.key};
}

Settings given_settings(const Invocation& invocation) {
  Settings settings;
  for (const auto& [flag, values] : invocation.flags) {
    settings.put(flag->name, {values, Layer::flag, "--" + std::string(flag->name)});
  }
  for (const Flag& flag : flags()) {
    if (!flag.in_environment() || !flag.is_of(*invocation.command)) continue;
    std::string found;
    for (const std::string& name : variables_of(flag)) {
      std::string value = variable(name);
      if (value.empty()) continue;
      if (!found.empty()) refuse_usage(name + ": cannot be combined with " + found);
      settings.put(flag.name, {{std::move(value)}, Layer::environment, name});
      found = name;
    }
  }
  return settings;
}

std::array<std::string, 2> config_paths() { return {users_config(), std::string(kMachinesConfig)}; }

Result<std::optional<ConfigFile>> find_config(const Settings& settings) {
  if (const Setting* named = settings.find("config")) {
    if (named->text().empty()) return std::optional<ConfigFile>();
    auto file = read_config(named->text(), config_kind);
    if (file && !*file) {
      return Error{Errc::invalid, named->where + ": " + named->text() + ": no such file"};
    }
    return file;
  }
  std::optional<ConfigFile> config;
  std::string out_of_reach;
  for (const std::string& path : config_paths()) {
    auto file = read_config(path, config_kind);
    if (!file && is_out_of_reach(path)) {
      if (out_of_reach.empty()) out_of_reach = path;
    } else if (!file) {
      return file.error();
    } else if (config && *file) {
      config->add(std::move(**file));
    } else if (*file) {
      config = std::move(*file);
    }
  }
  if (out_of_reach.empty()) return config;
  if (!config) config.emplace();
  config->out_of_reach = out_of_reach;
  return config;
}

namespace {

// Checks all values of all profiles.  So the first command that reads the file reports a mistake,
// not the first one that uses the value, weeks later.
void check_values(const ConfigFile& config) {
  for (const ConfigEntry& entry : config.entries) {
    if (const Flag* flag = find_config_key(entry.key)) {
      check_value(setting_of(entry), *flag);
    }
  }
}

}  // namespace

std::optional<ConfigFile> load_config(const Settings& settings, const Command& command) {
  auto file = find_config(settings);
  if (!file) {
    const bool is_read = file.error().code == Errc::invalid;
    refuse_config(file.error().message + (is_read ? "" : " (--config '' goes without it)"));
  }
  if (!*file) return std::nullopt;
  check_values(**file);
  std::erase_if((*file)->entries, [&](const ConfigEntry& entry) {
    const Flag* flag = find_config_key(entry.key);
    return flag != nullptr && !flag->is_of(command);
  });
  return std::move(*file);
}

std::vector<Settings> each_backend(const Invocation& invocation, const Settings& settings) {
  if (!invocation.has("all")) return {settings};
  if (invocation.has("backend")) refuse_usage("--all: cannot be combined with --backend");
  const auto config = load_config(settings, *invocation.command);
  std::vector<Settings> out;
  for (const ConfigProfile& profile : config ? config->profiles : std::vector<ConfigProfile>()) {
    out.emplace_back(settings).put("backend", {{profile.name}, Layer::flag, "--all"});
  }
  if (out.empty()) refuse_config("--all: no config file names a backend; see man dlock-config");
  return out;
}

void add_config(Settings& settings, const ConfigFile& config, std::string_view profile) {
  for (const ConfigEntry& entry : config.entries) {
    const Flag* flag = find_config_key(entry.key);
    if (entry.profile != profile || flag == nullptr) continue;
    settings.put(flag->name, setting_of(entry));
  }
}

void set_log_from(const Settings& settings) {
  const Setting* json = effective(settings, flag("json"));
  const Setting* quiet = effective(settings, flag("quiet"));
  const Setting* verbose = effective(settings, flag("verbose"));
  util::set_log(quiet != nullptr     ? -1
                : verbose != nullptr ? to_count(*verbose, 2)
                                     : 0,
                json != nullptr);
}

}  // namespace dlock::cli
