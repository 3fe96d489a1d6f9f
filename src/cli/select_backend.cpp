#include "cli/select_backend.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/layers.hpp"
#include "cli/refusal.hpp"
#include "cli/shards.hpp"
#include "cli/source.hpp"
#include "cli/unknown_words.hpp"
#include "cli/values.hpp"
#include "core/secret.hpp"
#include "core/trusted_file.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

// Parses HOST, HOST:PORT or, if each server may have one, a URL. `which` is its rank in the list.
// The text is never shown: it may be a part of a password that contains a comma.
Url server_of(std::string_view text, const std::string& which, const Setting& servers,
              const BackendEntry& entry, std::span<const BackendEntry> backends) {
  if (looks_like_url(text)) {
    auto url = parse_url(text);
    if (!url) refuse(servers, which + ": " + url.error().message);
    const BackendEntry* its = entry_of(*url, backends);
    if (its == nullptr || its->name != entry.server_scheme) {
      refuse(servers, "the URL of a server must begin with " + std::string(entry.server_scheme) +
                          "://; another backend's goes into --backend");
    }
    return std::move(*url);
  }
  auto host = parse_host_port(text);
  if (!host) refuse(servers, which + ": " + host.error().message);
  Url url{.scheme = std::string(entry.server_scheme)};
  url.hosts.push_back(std::move(*host));
  return url;
}

void check_parts(const Setting& servers, const BackendEntry& entry) {
  const bool may_be_urls = !entry.server_scheme.empty();
  for (const std::string_view part : items_of(servers)) {
    const bool has_user = part.find('@') != std::string_view::npos;
    if (!may_be_urls && (has_user || looks_like_url(part))) {
      refuse(servers, "takes HOST or HOST:PORT; a URL or a user goes into --backend");
    }
    if (has_user && !looks_like_url(part)) {
      refuse(servers, "takes HOST, HOST:PORT or a URL, as in " + std::string(entry.server_scheme) +
                          "://user:password@host; in a password a comma is written %2C");
    }
  }
}

std::string rank(std::size_t i, std::size_t count) {
  return "server " + std::to_string(i + 1) + " of " + std::to_string(count);
}

// A HOST beside a rediss:// URL would get the password without TLS.
void check_tls(const Setting& servers, std::span<const std::string_view> parts,
               std::span<const Url> urls, const BackendEntry& its) {
  const auto secure = std::ranges::find_if(urls, [&](const Url& url) {
    const UrlForm* form = find_form(its.forms, url.scheme);
    return form != nullptr && form->tls;
  });
  const auto host = std::find_if_not(parts.begin(), parts.end(), looks_like_url);
  if (secure == urls.end() || host == parts.end()) return;
  const std::string tls = secure->scheme + "://";
  refuse(servers, rank(static_cast<std::size_t>(host - parts.begin()), parts.size()) +
                      " has no scheme; beside a " + tls +
                      " URL each server needs a URL of its own: " + tls + " with TLS, " +
                      std::string(its.name) + ":// without");
}

// Returns the setting if it supplies the servers in `target`.
const Setting* take_servers(const Settings& settings, const Source& source,
                            const BackendEntry& entry, std::span<const BackendEntry> backends,
                            Target& target) {
  const Setting* servers = settings.find("server");
  if (servers == nullptr) return nullptr;
  // A variable may be meant for other backends.  An option is a mistake.
  if (entry.traits.reach == Traits::Reach::host) {
    if (source.by_default) {
      refuse(*servers, "names servers, and no backend is named: say which, as in -b redis; -b " +
                           std::string(entry.name) + " means files of this machine");
    }
    if (servers->layer == Layer::flag) {
      refuse(*servers, "the " + std::string(entry.name) + " backend has no servers");
    }
    return nullptr;
  }
  if (source.has_servers && servers->layer > Layer::profile) {
    refuse(*servers,
           "the profile " + util::in_quotes(source.profile) + " names its servers already");
  }
  const UrlForm* form = find_form(entry.forms, target.url.scheme);
  const bool is_socket =
      (form != nullptr && form->most_hosts == 0) || target.url.query.contains("socket");
  if (source.shards || !target.url.hosts.empty() || is_socket) {
    const Setting& said = source.setting;
    const bool is_over = source.named_by <= Layer::file && servers->layer == Layer::environment;
    if (servers->layer == Layer::flag || servers->layer == said.layer || is_over) {
      refuse(*servers, source.shards
                           ? "the URLs of " + said.where + " name their servers themselves"
                           : "the URL of " + said.where + " names its servers already");
    }
    return nullptr;
  }
  check_parts(*servers, entry);
  const std::vector<std::string_view> parts = items_of(*servers);
  std::vector<Url> urls;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    urls.push_back(server_of(parts[i], rank(i, parts.size()), *servers, entry, backends));
  }
  if (std::none_of(parts.begin(), parts.end(), looks_like_url)) {
    for (Url& url : urls) target.url.hosts.push_back(std::move(url.hosts.front()));
    return servers;
  }
  check_tls(*servers, parts, urls, *find_backend(backends, entry.server_scheme));
  target.servers = std::move(urls);
  return servers;
}

bool any_holds_password(std::span<const Url> urls) {
  return std::any_of(urls.begin(), urls.end(), holds_password);
}

bool each_holds_password(std::span<const Url> urls) {
  return !urls.empty() && std::all_of(urls.begin(), urls.end(), holds_password);
}

void warn_of_passwords(const Settings& settings, const Source& source, std::span<const Url> urls,
                       const Target& target) {
  const auto warn = [](const std::string& where, const char* instead) {
    util::log(util::Level::warning, "anybody on this machine can read the password in " + where +
                                        " with ps; " + instead + " would hide it");
  };
  if (source.setting.layer == Layer::flag && any_holds_password(urls)) {
    warn(source.setting.where, "DLOCK_BACKEND, a profile or --password-file");
  }
  if (!any_holds_password(target.servers)) return;
  const Setting& servers = *settings.find("server");
  if (servers.layer == Layer::flag) {
    warn(servers.where, "DLOCK_SERVERS, the config file or --password-file");
  }
}

using Kind = UrlParameter::Kind;

// The path of the secret file of this kind that the URL names; null if it names none.
const std::string* find_secret(Kind kind, const Url& url, const BackendEntry& entry) {
  const UrlForm* form = find_form(entry.forms, url.scheme);
  for (const auto& [name, path] : url.query) {
    const UrlParameter* parameter = form != nullptr ? find_parameter(*form, name) : nullptr;
    if (parameter != nullptr && parameter->kind == kind) return &path;
  }
  return nullptr;
}

std::string read_auth(const Setting& source, const Url& url, const BackendEntry& entry) {
  const std::string* path = find_secret(Kind::secret_file, url, entry);
  if (path == nullptr) path = find_secret(Kind::other_secret_file, url, entry);
  // A relative path is refused later, with the other rules of the URL.
  if (path == nullptr || !path->starts_with('/')) return "";
  auto auth = read_password(*path);
  if (!auth) refuse_config(source.where + ": " + auth.error().message);
  return std::move(*auth);
}

// Sets the password of each URL that has none.
void take_password(const Settings& settings, const Source& source, const BackendEntry& entry,
                   std::span<Url> urls, Target& target) {
  warn_of_passwords(settings, source, urls, target);
  // mentions_password() does not find every password in the text.
  if (any_holds_password(urls) || any_holds_password(target.servers)) hide_memory();
  const Setting& said = source.setting;
  const Setting* file = settings.find("password-file");
  if (file == nullptr) return;
  if (entry.traits.reach == Traits::Reach::host) {
    if (file->layer == Layer::flag) {
      refuse(*file, "the " + std::string(entry.name) + " backend has no password");
    }
    return;
  }
  if (each_holds_password(urls)) {
    if (file->layer == said.layer) {
      refuse(*file, (source.shards ? "each URL of " : "the URL of ") + said.where +
                        " holds a password already");
    }
    if (file->layer < said.layer) return;
  }
  if (each_holds_password(target.servers)) {
    const Setting& servers = *settings.find("server");
    if (file->layer == servers.layer || file->layer == Layer::flag) {
      refuse(*file, "each URL of " + servers.where + " holds a password already");
    }
    return;
  }
  if (file->from_file() && !file->text().starts_with('/')) {
    refuse(*file, "must be an absolute path");
  }
  auto password = read_password(to_text(*file));
  if (!password) refuse_config(file->where + ": " + password.error().message);
  for (Url& url : urls) {
    const bool has_other =
        find_secret(Kind::secret_file, url, entry) != nullptr && file->layer != Layer::flag;
    if (has_other || (holds_password(url) && file->layer <= said.layer)) continue;
    url.password = *password;
    target.password_from = file->text();
  }
}

// The unread file may name the server or the prefix.  Then other users, who can read it, would not
// be excluded.  Therefore this is printed even with -q.
void tell_of_unread(const Settings& settings, const Source& source, const BackendEntry& entry,
                    const std::string& path) {
  const bool is_machines = path == kMachinesConfig;
  const bool by_users_file = source.file == Source::File::users;
  if (is_machines && by_users_file) return;  // which names the backend: of the other nothing counts
  const auto is_given = [&](std::string_view name) {
    const Setting* setting = settings.find(name);
    return setting != nullptr && !setting->from_file();
  };
  const bool has_place =
      !source.setting.from_file() && (looks_like_url(source.setting.text()) || is_given("server"));
  const bool is_of_host = entry.traits.reach == Traits::Reach::host;
  if (is_of_host ? !source.setting.from_file() : has_place) return;
  util::log(util::Level::error,
            path + " cannot be reached, since a directory above it may not be searched; " +
                (source.by_default ? "so the locks are those of this machine alone"
                                   : "so a backend that it names is not used") +
                (is_machines ? "" : " (is HOME that of another user?)") +
                "; --config '' goes without the file");
}

// The setting that makes the target invalid. `servers`, if not null, is the setting that supplies
// its servers.
const Setting& blamed_for(const Target& target, const BackendEntry& entry, const Setting& source,
                          const Setting* servers, const Setting* prefix) {
  Target without = target;
  without.prefix.reset();
  if (prefix != nullptr && entry.place(without)) return *prefix;
  without = target;
  without.servers.clear();
  without.url.hosts = {{"localhost"}};
  return servers != nullptr && entry.place(without) ? *servers : source;
}

}  // namespace

std::string options_of(const Settings& settings, const Target& target, Layer least) {
  std::string out;
  Url shown = target.url;
  shown.password.clear();
  for (const char* name : {"config", "backend", "server", "prefix", "password-file"}) {
    const Setting* setting = settings.find(name);
    if (setting == nullptr || setting->layer < least) continue;
    const bool is_backend = name == std::string_view("backend");
    for (const std::string& value : setting->values) {
      out += (is_backend ? " -b " : std::string(" --") + name + ' ') +
             (!mentions_password(value) ? util::in_shell(value)
              : is_backend              ? util::in_shell(shown.redacted())
                                        : "SERVERS");
    }
  }
  return out;
}

Selection select_backend(Settings& settings, const std::optional<ConfigFile>& config,
                         std::span<const BackendEntry> backends) {
  const Source source = find_source(settings, config, backends);
  set_log_from(settings);
  warn_of_unknown_variables();
  if (source.by_default && std::getenv("DLOCK_BACKEND") != nullptr) {
    util::log(util::Level::error,
              "the variable DLOCK_BACKEND is empty, so the locks are files of this machine");
  }

  Selection selection;
  std::vector<Url> urls = take_urls(source, settings, config, backends, selection.entry);
  const BackendEntry& entry = *selection.entry;
  if (entry.open == nullptr) {
    refuse(source.setting,
           util::in_quotes(entry.name) +
               " is not built into this dlock (built in: " + backend_names(backends, true) + ")");
  }
  if (config && !config->out_of_reach.empty()) {
    tell_of_unread(settings, source, entry, config->out_of_reach);
  }
  selection.by_default = source.by_default;
  selection.profile = source.profile;
  const bool is_typed = source.setting.layer == Layer::flag || source.by_default;
  const std::string& where = source.setting.where;  // "/etc/dlock/config.json:3: url"
  if (!is_typed) selection.target.named_by = where.substr(0, where.rfind(": "));

  Target& target = selection.target;
  target.url = source.shards ? Url{.scheme = std::string(entry.name)} : urls.front();
  const Setting* const servers = take_servers(settings, source, entry, backends, target);
  if (servers != nullptr && servers->layer == Layer::environment) {
    target.named_by = servers->where;
  }
  if (source.shards) {
    take_password(settings, source, entry, urls, target);
  } else {
    take_password(settings, source, entry, {&target.url, 1}, target);
  }
  if (const Setting* prefix = settings.find("prefix")) target.prefix = prefix->text();
  if (const Setting* timeout = settings.find("connect-timeout")) {
    target.connect_timeout = to_duration(*timeout, flag("connect-timeout"));
  }
  target.options = options_of(settings, target, Layer::environment);
  if (!source.shards) target.auth = read_auth(source.setting, target.url, entry);
  if (source.shards) {
    const Target common = target;
    for (const Url& url : urls) {
      Target& shard = target.shards.emplace_back(common);
      shard.url = url;
      shard.auth = read_auth(source.setting, url, entry);
    }
  }
  // Refuses an invalid target. `which` is the rank of a shard.
  const auto place_of = [&](const Target& one, const std::string& which) {
    auto place = entry.place(one);
    if (place) return std::move(*place);
    const Setting& blamed =
        blamed_for(one, entry, source.setting, servers, settings.find("prefix"));
    const bool from_file = blamed.from_file() && !(source.by_default && &blamed == &source.setting);
    throw Refusal(
        from_file ? exit_status::kConfig : exit_status::kUsage,
        blamed.where + ": " + (&blamed == &source.setting ? which : "") + place.error().message);
  };
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < target.shards.size(); ++i) {
    const std::string which = shard_rank(i, target.shards.size());
    const auto [place, is_new] = places.emplace(place_of(target.shards[i], which + ": "), i);
    if (is_new) continue;
    refuse(source.setting,
           which + " is the same database as shard " + std::to_string(place->second + 1));
  }
  if (target.shards.empty()) place_of(target, "");
  return selection;
}

}  // namespace dlock::cli
