#include "cli/settings_in_force.hpp"

#include <unistd.h>

#include <array>
#include <string>

#include "cli/layers.hpp"
#include "cli/other_users.hpp"
#include "cli/refusal.hpp"
#include "cli/values.hpp"
#include "core/secret.hpp"
#include "util/duration.hpp"
#include "util/log.hpp"

namespace dlock::cli {
namespace {

// The config files, and which keys and profiles of the machine's file the user's file overrides.
void add_config_files(const Settings& settings, Diagnosis& out) {
  const auto add = [&](const std::string& path, const std::string& what) {
    out.settings.push_back({"config file", path, what});
  };
  if (const Setting* named = settings.find("config")) return add(named->text(), named->where);
  std::array<std::optional<ConfigFile>, 2> files;
  const auto paths = config_paths();
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].empty()) continue;
    auto file = read_config(paths[i], config_kind);
    if (file) files[i] = std::move(*file);
    add(paths[i], !file ? "cannot be read" : files[i] ? "read" : "not there");
  }
  if (!files[0] || !files[1]) return;
  std::string hidden;
  for (const ConfigEntry& entry : files[1]->entries) {
    const bool is_hidden = entry.profile.empty() && files[0]->find("", entry.key) != nullptr;
    if (is_hidden) hidden += (hidden.empty() ? "" : ", ") + entry.key;
  }
  for (const ConfigProfile& profile : files[1]->profiles) {
    const bool is_hidden = files[0]->find_profile(profile.name) != nullptr;
    if (is_hidden) hidden += (hidden.empty() ? "profile " : ", profile ") + profile.name;
  }
  if (hidden.empty()) return;
  out.findings.push_back({"config-hidden", Severity::warn, "",
                          paths[0] + " hides of " + paths[1] + ": " + hidden,
                          "Other users of this machine, such as cron, use other values, and other "
                          "locks.",
                          "remove these keys from " + paths[0]});
}

void add_settings(const Settings& settings, const Patient& patient, std::vector<InForce>& out) {
  const Target& target = patient.selection.target;
  const std::string& profile = patient.selection.profile;
  const auto add = [&](const char* name, const char* flag_name, std::string value) {
    const Setting* setting = settings.find(flag_name);
    if (value.empty()) return;
    out.push_back({name, std::move(value), setting == nullptr ? "default" : setting->where});
  };
  add("backend", "backend", patient.diagnosis.backend);
  if (!profile.empty()) out.back().source += ", profile " + profile;
  if (!target.named_by.empty() && !profile.empty()) out.back().source += ", " + target.named_by;
  std::string servers;
  for (const Url& server : target.servers)
    servers += (servers.empty() ? "" : ",") + server.redacted();
  add("servers", "server", servers);
  add("prefix", "prefix", target.prefix.value_or(""));
  add("user", "backend", target.url.user);
  add("password file", "password-file", target.password_from);
  add("ttl", "ttl", util::format_duration(patient.ttl));
  add("connect timeout", "connect-timeout", util::format_duration(target.connect_timeout));
}

void add_other_users(const Patient& patient, Findings& out) {
  const bool is_default = patient.selection.entry->traits.reach == Traits::Reach::host &&
                          patient.selection.target.url.path.empty();
  const OtherUsers others = is_default ? other_users_directories() : OtherUsers();
  if (others.places.empty()) return;
  out.push_back({"file-other-users", Severity::note, "", others.places,
                 "Locks of root and of these users are apart: their jobs run at the same time.",
                 "share one directory: man dlock-file"});
}

std::string backend_of(const Target& target) {
  if (target.shards.empty()) return target.url.redacted();
  std::string out;
  for (const Target& shard : target.shards) out += (out.empty() ? "" : " ") + shard.url.redacted();
  return out;
}

}  // namespace

Patient find_patient(const Invocation& invocation, Settings settings,
                     std::span<const BackendEntry> backends) {
  Patient out;
  Diagnosis& diagnosis = out.diagnosis;
  std::vector<std::string> messages;
  try {
    const util::LogInto kept(messages);
    const auto config = load_config(settings, *invocation.command);
    out.selection = select_backend(settings, config, backends);
    if (const Setting* ttl = settings.find("ttl")) out.ttl = to_duration(*ttl, flag("ttl"));
    diagnosis.backend = backend_of(out.selection.target);
    add_settings(settings, out, diagnosis.settings);
    add_other_users(out, diagnosis.findings);
  } catch (const Refusal& refusal) {
    out.selection.entry = nullptr;
    diagnosis.refused = refusal.status();
    diagnosis.findings.push_back({"setting", Severity::fail, "", refusal.what(),
                                  "No job starts with these settings.", "man dlock-config"});
  }
  add_config_files(settings, diagnosis);
  for (const std::string& message : messages) {
    diagnosis.findings.push_back({"setting", Severity::warn, "", message,
                                  "A setting that is not read can leave a job without its lock.",
                                  "man dlock-config"});
  }
  return out;
}

}  // namespace dlock::cli
