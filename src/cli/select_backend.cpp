#include "cli/select_backend.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <string>

#include "cli/layers.hpp"
#include "cli/refusal.hpp"
#include "cli/values.hpp"
#include "core/trusted_file.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

const BackendEntry* find_backend(std::span<const BackendEntry> backends, std::string_view name) {
  for (const BackendEntry& entry : backends) {
    if (name.empty()) break;
    if (name == entry.name || name == entry.alias || name == entry.tls_scheme) return &entry;
  }
  return nullptr;
}

void check_profile_names(const ConfigFile& config, std::span<const BackendEntry> backends) {
  for (const ConfigProfile& profile : config.profiles) {
    if (find_backend(backends, profile.name) != nullptr) {
      refuse_config(config.at(profile.line) + ": profile " + util::quoted(profile.name) +
                    " has the name of a backend; give it another");
    }
    if (config.find(profile.name, "url") == nullptr) {
      refuse_config(config.at(profile.line) + ": profile " + util::quoted(profile.name) +
                    " has no \"url\"");
    }
  }
}

[[noreturn]] void refuse_unknown(const Setting& source, const std::optional<ConfigFile>& config,
                                 std::span<const BackendEntry> backends) {
  std::string message = "there is no backend " + shown_word(source.text()) +
                        "; backends: " + backend_names(backends, false);
  if (config && !config->profiles.empty()) {
    message += "; profiles:";
    for (const ConfigProfile& profile : config->profiles) {
      message += (&profile == &config->profiles.front() ? " " : ", ") + profile.name;
    }
  }
  refuse(source, message);
}

void take_servers(const Settings& settings, const Setting& source, const BackendEntry& entry,
                  Url& url) {
  const Setting* servers = settings.find("server");
  if (servers == nullptr) return;
  // A variable that is set for other backends does no harm here; a flag is a mistake.
  if (entry.traits.reach == Traits::Reach::host) {
    if (servers->layer == Layer::flag) {
      refuse(*servers, "the " + std::string(entry.name) + " backend has no servers");
    }
    return;
  }
  if (!url.hosts.empty()) {
    if (servers->layer == Layer::flag || servers->layer == source.layer) {
      refuse(*servers, "the URL of " + source.where + " names its servers already");
    }
    return;
  }
  for (const std::string& value : servers->values) {
    std::string_view rest = value;
    for (bool more = true; more;) {
      const auto comma = rest.find(',');
      const std::string_view address = rest.substr(0, comma);
      more = comma != std::string_view::npos;
      if (more) rest.remove_prefix(comma + 1);
      if (address.find('@') != std::string_view::npos || looks_like_url(address)) {
        refuse(*servers, "takes HOST or HOST:PORT; a URL or a user goes into --backend");
      }
      auto host = parse_host_port(address);
      if (!host) refuse(*servers, host.error().message);
      url.hosts.push_back(std::move(*host));
    }
  }
}

void take_password(const Settings& settings, const Setting& source, const BackendEntry& entry,
                   Url& url) {
  if (source.layer == Layer::flag && holds_password(url)) {
    util::log(util::Level::warning,
              "anybody on this machine can read the password in " + source.where +
                  " with ps; DLOCK_BACKEND, a profile or --password-file would hide it");
  }
  const Setting* file = settings.find("password-file");
  if (file == nullptr) return;
  if (entry.traits.reach == Traits::Reach::host) {
    if (file->layer == Layer::flag) {
      refuse(*file, "the " + std::string(entry.name) + " backend has no password");
    }
    return;
  }
  if (holds_password(url)) {
    if (file->layer == source.layer) {
      refuse(*file, "the URL of " + source.where + " holds a password already");
    }
    if (file->layer < source.layer) return;
  }
  if (file->from_file() && !file->text().starts_with('/')) {
    refuse(*file, "must be an absolute path");
  }
  auto password = read_password(to_text(*file));
  if (!password) refuse_config(file->where + ": " + password.error().message);
  url.password = std::move(*password);
}

void check_target(const Settings& settings, const Setting& source, const Selection& selection) {
  if (selection.entry->check == nullptr) return;
  const auto ok = selection.entry->check(selection.target);
  if (ok) return;
  // Which of them is at fault only the message knows; the one that counts most decides.
  const Setting* blamed = &source;
  for (const char* name : {"server", "prefix"}) {
    const Setting* other = settings.find(name);
    if (other != nullptr && other->layer > blamed->layer) blamed = other;
  }
  const bool from_file = blamed->from_file() && settings.find("backend") != nullptr;
  throw Refusal(from_file ? exit_status::kConfig : exit_status::kUsage,
                source.where + ": " + ok.error().message);
}

}  // namespace

std::string backend_names(std::span<const BackendEntry> backends, bool built_in) {
  std::string out;
  for (const BackendEntry& entry : backends) {
    if (built_in && entry.open == nullptr) continue;
    out += (out.empty() ? "" : ", ") + std::string(entry.name);
  }
  return out;
}

Selection select_backend(Settings& settings, const std::optional<ConfigFile>& config,
                         std::span<const BackendEntry> backends) {
  if (config) {
    check_profile_names(*config, backends);
    add_config(settings, *config, "");
  }
  const Setting* said = settings.find("backend");
  Setting source =
      said != nullptr
          ? *said
          : Setting{{std::string(backends.front().name)}, Layer::file, "the default backend"};
  to_text(source);
  if (config && config->find_profile(source.text()) != nullptr) {
    const std::string profile = source.text();
    add_config(settings, *config, profile);
    const ConfigEntry& url = *config->find(profile, "url");
    source = {url.values, Layer::profile, config->at(url.line) + ": url"};
    if (!looks_like_url(source.text())) refuse(source, "must be a URL, as in redis://host:6379");
  }

  set_log_from(settings);

  Selection selection;
  Url& url = selection.target.url;
  if (looks_like_url(source.text())) {
    auto parsed = parse_url(source.text());
    if (!parsed) refuse(source, parsed.error().message);
    url = std::move(*parsed);
  } else {
    url.scheme = source.text();
  }
  // "redis+unix" and "rediss" are the backend "redis", reached another way.
  const auto plus = std::min(url.scheme.find('+'), url.scheme.size());
  const std::string name = url.scheme.substr(0, plus);
  selection.entry = find_backend(backends, name);
  if (selection.entry == nullptr) refuse_unknown(source, config, backends);
  const BackendEntry& entry = *selection.entry;
  if (name != entry.tls_scheme) url.scheme = std::string(entry.name) + url.scheme.substr(plus);
  if (entry.open == nullptr) {
    refuse(source, util::quoted(entry.name) + " is not built into this dlock (built in: " +
                       backend_names(backends, true) + ")");
  }

  take_servers(settings, source, entry, url);
  take_password(settings, source, entry, url);
  if (const Setting* prefix = settings.find("prefix")) selection.target.prefix = prefix->text();
  if (const Setting* timeout = settings.find("connect-timeout")) {
    using std::chrono::hours;
    selection.target.connect_timeout =
        to_duration(*timeout, Millis{1}, hours{24}, "more than 0 and at most 24h");
  }
  check_target(settings, source, selection);
  // No core file shows a password or a private key, and no debugger of the same user.  The command
  // of a run is not affected: exec makes it dumpable again.
  if (holds_password(url) || url.query.contains("cert")) prctl(PR_SET_DUMPABLE, 0);
  return selection;
}

}  // namespace dlock::cli
