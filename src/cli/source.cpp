#include "cli/source.hpp"

#include <algorithm>

#include "cli/layers.hpp"
#include "cli/refusal.hpp"
#include "cli/shards.hpp"
#include "cli/values.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

template <class Wanted>
std::string names_of(std::span<const BackendEntry> backends, Wanted wanted) {
  std::string out;
  for (const BackendEntry& entry : backends) {
    if (wanted(entry)) out += (out.empty() ? "" : ", ") + std::string(entry.name);
  }
  return out;
}

void check_profile_names(const ConfigFile& config, std::span<const BackendEntry> backends) {
  for (const ConfigProfile& profile : config.profiles) {
    if (find_backend(backends, profile.name) != nullptr) {
      refuse_config(profile.where + ": profile " + util::in_quotes(profile.name) +
                    " has the name of a backend; give it another");
    }
    const ConfigEntry* shards = config.find(profile.name, "shards");
    const bool has_url = config.find(profile.name, "url") != nullptr;
    if (!has_url && shards == nullptr) {
      refuse_config(profile.where + ": profile " + util::in_quotes(profile.name) +
                    " has no \"url\"");
    }
    if (has_url && shards != nullptr) {
      refuse_config(shards->where + ": profile " + util::in_quotes(profile.name) +
                    " has both \"url\" and \"shards\"; it is one or the other");
    }
  }
}

// What one of two config files says at its top.
const ConfigEntry* find_on_top(const ConfigFile& config, std::string_view key, bool machines) {
  const auto found = std::ranges::find_if(config.entries, [&](const ConfigEntry& entry) {
    return entry.profile.empty() && entry.key == key && entry.is_added == machines;
  });
  return found == config.entries.end() ? nullptr : &*found;
}

// What belongs to a backend is taken from the config file that names it: servers, prefix and
// password of the other file are for another server.  A user's file that names no server has the
// user's password for that of the machine.
void add_what_belongs(Settings& settings, const ConfigFile& config, const Source& source) {
  using File = Source::File;
  const auto put = [&](const Flag& flag, bool machines) {
    const ConfigEntry* entry = find_on_top(config, config_key_of(flag), machines);
    if (entry != nullptr) settings.put(flag.name, setting_of(*entry));
  };
  const ConfigEntry* users = find_on_top(config, "servers", false);
  const ConfigEntry* machines = find_on_top(config, "servers", true);
  if (users != nullptr && source.file == File::machines && source.named_by == Layer::machine) {
    refuse(setting_of(*users), "the backend that they are for is named in another file, by " +
                                   source.setting.where + "; name it here, too");
  }
  const bool has_hosts = source.shards || looks_like_url(source.setting.text());
  const bool has_servers = has_hosts || settings.find("server") != nullptr;
  const File file = source.file != File::neither ? source.file
                    : has_servers                ? File::neither
                    : users != nullptr           ? File::users
                    : machines != nullptr        ? File::machines
                                                 : File::neither;
  for (const char* name : {"server", "prefix", "password-file"}) {
    if (file != File::users) put(flag(name), true);
    if (file != File::machines) put(flag(name), false);
  }
  const bool names_none = users == nullptr && find_on_top(config, "backend", false) == nullptr;
  if (file == File::machines && names_none) put(flag("password-file"), false);
}

[[noreturn]] void refuse_unknown(const Setting& source, const std::string& scheme,
                                 const std::optional<ConfigFile>& config,
                                 std::span<const BackendEntry> backends) {
  std::string message = no_backend(scheme, backends);
  if (config && !config->profiles.empty()) {
    message += "; profiles:";
    for (const ConfigProfile& profile : config->profiles) {
      message += (&profile == &config->profiles.front() ? " " : ", ") + profile.name;
    }
  }
  if (config && !config->out_of_reach.empty()) {
    message += "; " + config->out_of_reach + " cannot be reached";
  }
  refuse(source, message);
}

}  // namespace

Source find_source(Settings& settings, const std::optional<ConfigFile>& config,
                   std::span<const BackendEntry> backends) {
  if (config) {
    check_profile_names(*config, backends);
    add_config(settings, *config, "");
  }
  const Setting* said = settings.find("backend");
  const Setting setting =
      said != nullptr
          ? *said
          : Setting{{std::string(backends.front().name)}, Layer::file, "the default backend"};
  const std::string& name = to_text(setting);
  Source source{setting};
  source.named_by = setting.layer;
  source.by_default = said == nullptr;
  if (config && config->find_profile(name) != nullptr) {
    add_config(settings, *config, name);
    const ConfigEntry* url = config->find(name, "url");
    const ConfigEntry& where = url != nullptr ? *url : *config->find(name, "shards");
    source.setting = {where.values, Layer::profile, where.where + ": " + where.key};
    source.shards = url == nullptr;
    source.profile = name;
    source.file = where.is_added ? Source::File::machines : Source::File::users;
    if (!source.shards && !looks_like_url(source.setting.text())) {
      refuse(source.setting, "must be a URL, as in redis://host:6379");
    }
  } else if (said != nullptr && said->from_file()) {
    source.file = said->layer == Layer::machine ? Source::File::machines : Source::File::users;
  }
  if (config) add_what_belongs(settings, *config, source);
  return source;
}

std::vector<Url> take_urls(const Source& source, const std::optional<ConfigFile>& config,
                           std::span<const BackendEntry> backends, const BackendEntry*& entry) {
  const Setting& setting = source.setting;
  std::vector<Url> urls;
  if (source.shards) {
    urls = shard_urls(setting);
  } else if (looks_like_url(setting.text())) {
    auto parsed = parse_url(setting.text());
    if (!parsed) refuse(setting, parsed.error().message);
    urls.push_back(std::move(*parsed));
  } else {
    urls.push_back({.scheme = setting.text()});
  }
  for (Url& url : urls) {
    const std::string scheme = url.scheme;
    const BackendEntry* its = is_scheme(scheme) ? entry_of(url, backends) : nullptr;
    if (its == nullptr && source.shards) {
      refuse(setting, shard_rank(static_cast<std::size_t>(&url - urls.data()), urls.size()) +
                          " does not begin with the name of a backend; backends: " +
                          backend_names(backends, false));
    }
    if (its == nullptr) refuse_unknown(setting, scheme, config, backends);
    if (entry != nullptr && its != entry) {
      refuse(setting, "all shards must be of the same backend, not " + std::string(entry->name) +
                          " and " + std::string(its->name));
    }
    entry = its;
  }
  return urls;
}

const BackendEntry* entry_of(Url& url, std::span<const BackendEntry> backends) {
  const std::string_view scheme = url.scheme;
  const BackendEntry* entry = find_backend(backends, scheme);
  const auto plus = entry != nullptr ? scheme.size() : std::min(scheme.find('+'), scheme.size());
  const std::string_view base = scheme.substr(0, plus);
  if (entry == nullptr) entry = find_backend(backends, base);
  if (entry == nullptr || find_form(entry->forms, base) != nullptr) return entry;
  url.scheme = std::string(entry->name) + std::string(scheme.substr(plus));
  return entry;
}

const BackendEntry* find_backend(std::span<const BackendEntry> backends, std::string_view name) {
  if (name.empty()) return nullptr;
  const auto found = std::ranges::find_if(backends, [&](const BackendEntry& entry) {
    return name == entry.name || std::ranges::count(entry.aliases, name) > 0 ||
           find_form(entry.forms, name) != nullptr;
  });
  return found == backends.end() ? nullptr : &*found;
}

std::string no_backend(std::string_view word, std::span<const BackendEntry> backends) {
  // The rest of a URL that lacks a slash can be a password.
  const std::string_view scheme = word.substr(0, word.find(':'));
  const bool is_known = find_backend(backends, scheme) != nullptr;
  const std::string which =
      is_scheme(word) ? "backend " + util::in_quotes(word, 60)
      : is_known && scheme != word
          ? "such backend; write " + std::string(scheme) + ":// with two slashes"
          : "such backend; a URL is as in redis://host or file:///directory";
  return "there is no " + which + "; backends: " + backend_names(backends, false);
}

void refuse_if_forgetful(const BackendEntry& entry, std::string_view lacks,
                         std::span<const BackendEntry> backends) {
  if (entry.traits.remembers) return;
  refuse_usage("the backend " + std::string(entry.name) + ' ' + std::string(lacks) +
               "; use one of: " +
               names_of(backends, [](const BackendEntry& one) { return one.traits.remembers; }));
}

std::string backend_names(std::span<const BackendEntry> backends, bool built_in) {
  return names_of(backends,
                  [&](const BackendEntry& one) { return !built_in || one.open != nullptr; });
}

}  // namespace dlock::cli
