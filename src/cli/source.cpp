#include "cli/source.hpp"

#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "cli/layers.hpp"
#include "cli/refusal.hpp"
#include "cli/shards.hpp"
#include "cli/unknown_words.hpp"
#include "cli/values.hpp"
#include "core/secret.hpp"
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

bool is_host(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-';
  };
  return !text.empty() && std::ranges::all_of(text, is_letter);
}

// "redis" for 6379; "" if no service is known to have that port.
std::string scheme_of_port(std::string_view port, std::span<const BackendEntry> backends) {
  for (const BackendEntry& entry : backends) {
    for (const UrlForm& form : entry.forms) {
      if (form.port != 0 && std::to_string(form.port) == port) return std::string(form.scheme);
    }
  }
  return "";
}

// Their names, aliases and schemes.
std::vector<std::string_view> words_for_backends(std::span<const BackendEntry> backends) {
  std::vector<std::string_view> out;
  for (const BackendEntry& entry : backends) {
    out.push_back(entry.name);
    for (const std::string_view alias : entry.aliases) {
      if (!alias.empty()) out.push_back(alias);
    }
    for (const UrlForm& form : entry.forms) out.push_back(form.scheme);
  }
  return out;
}

// Names the profiles, or the config files that were looked for.
std::string about_profiles(const Settings& settings, const std::optional<ConfigFile>& config) {
  std::string names;
  if (config) {
    for (const ConfigProfile& profile : config->profiles) {
      names += (names.empty() ? "" : ", ") + profile.name;
    }
  }
  if (!names.empty()) names = "; profiles: " + names;
  if (config && !config->out_of_reach.empty()) {
    return names + "; " + config->out_of_reach + " cannot be reached";
  }
  if (!names.empty()) return names;
  if (config) return "; the config file has no profiles";
  if (settings.find("config") != nullptr) return "; no config file is read";
  std::string looked_for;
  for (const std::string& path : config_paths()) {
    if (!path.empty()) looked_for += (looked_for.empty() ? "" : ", ") + path;
  }
  return ": no config file was found (looked for " + looked_for + ")";
}

[[noreturn]] void refuse_unknown(const Setting& source, const std::string& scheme,
                                 const Settings& settings, const std::optional<ConfigFile>& config,
                                 std::span<const BackendEntry> backends) {
  const bool may_be_profile = is_scheme(scheme) && !looks_like_url(source.text());
  if (!may_be_profile) refuse(source, no_backend(scheme, backends));
  std::vector<std::string_view> names;
  if (config) {
    for (const ConfigProfile& profile : config->profiles) names.push_back(profile.name);
  }
  std::ranges::copy(words_for_backends(backends), std::back_inserter(names));
  const std::string near = did_you_mean(scheme, names);
  if (!near.empty()) refuse(source, "unknown backend " + util::in_quotes(scheme, 60) + near);
  refuse(source, util::in_quotes(scheme, 60) + " is not a backend, and not a profile" +
                     about_profiles(settings, config) +
                     "; backends: " + backend_names(backends, false));
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
    source.has_servers = config->find(name, "servers") != nullptr;
    source.file = where.is_added ? Source::File::machines : Source::File::users;
    if (!source.shards && !looks_like_url(source.setting.text())) {
      refuse(source.setting, "must be a URL, as in redis://host:6379");
    }
  } else if (said != nullptr && said->from_file()) {
    source.file = said->layer == Layer::machine ? Source::File::machines : Source::File::users;
  }
  return source;
}

std::vector<Url> take_urls(const Source& source, const Settings& settings,
                           const std::optional<ConfigFile>& config,
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
    if (its == nullptr) refuse_unknown(setting, scheme, settings, config, backends);
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
  const std::string shown = shown_word(std::string(word.substr(0, 200)));
  if (word.starts_with("//")) return "a URL begins with a scheme, as in redis://host";
  if (word.starts_with('/')) {
    // A part of a URL, with a password, may begin with a slash, too.
    const std::string top(word.substr(0, word.find('/', 1)));
    if (may_hold_password(word) || access(top.c_str(), F_OK) != 0)
      return "this is a path; a directory is file:///DIRECTORY";
    return shown + " is a path; write file://" + util::printable(word);
  }
  if (word.starts_with("./") || word.starts_with("../") || word.starts_with('~')) {
    return shown + " is a path; write file:// and the whole of it, from the first /";
  }
  // If a URL lacks a slash, the text behind the colon can be a password.  Only a well-known port is
  // certainly none.
  const auto colon = std::min(word.find(':'), word.size());
  const std::string_view before = word.substr(0, colon);
  if (const BackendEntry* known = find_backend(backends, before);
      known != nullptr && before != word) {
    return "a URL has two slashes: write " + std::string(before) + "://";
  }
  if (!is_scheme(word)) {
    const std::string scheme =
        scheme_of_port(word.substr(std::min(colon + 1, word.size())), backends);
    if (is_host(before) && !scheme.empty()) {
      return util::in_quotes(word) + " has no scheme; did you mean " + scheme + "://" +
             std::string(word) + '?';
    }
    return "this is no backend; a URL is as in redis://host or file:///directory; backends: " +
           backend_names(backends, false);
  }
  const std::string near = did_you_mean(word, words_for_backends(backends));
  return "unknown backend " + util::in_quotes(word, 60) +
         (near.empty() ? "; backends: " + backend_names(backends, false) : near);
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
