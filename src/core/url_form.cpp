#include "core/url_form.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "util/text.hpp"

namespace dlock {
namespace {

using Kind = UrlParameter::Kind;
using Path = UrlForm::Path;
using User = UrlForm::User;

constexpr std::size_t kLongestDatabase = 64;  // of MySQL and MariaDB, in characters

Error bad_url(std::string message) { return {Errc::invalid, std::move(message)}; }

std::string url_of(const UrlForm& form) { return std::string(form.scheme) + "://"; }

std::string with_advice(const std::string& text, const UrlForm& form) {
  return form.advice.empty() ? text : text + "; " + std::string(form.advice);
}

// "a, b or c"
template <class Words>
std::string one_of(const Words& words) {
  std::string out;
  for (auto word = words.begin(); word != words.end() && !word->empty(); ++word) {
    const bool is_last = word + 1 == words.end() || (word + 1)->empty();
    out += (out.empty() ? "" : is_last ? " or " : ", ") + std::string(*word);
  }
  return out;
}

Error unknown_scheme(const Url& url, std::span<const UrlForm> forms) {
  std::vector<std::string_view> examples;
  for (const UrlForm& form : forms) {
    if (form.refusal.empty()) examples.push_back(form.example);
  }
  return bad_url(with_advice(
      "unknown scheme " + util::in_quotes(url.scheme) + "; write " + one_of(examples), forms[0]));
}

// A name that is none may be a piece of a password.
Error unknown_parameter(const UrlForm& form) {
  std::vector<std::string_view> names;
  for (const UrlParameter& parameter : form.parameters) {
    if (!parameter.name.empty()) names.push_back(parameter.name);
  }
  return bad_url(with_advice("unknown parameter behind the ? of the URL; " + url_of(form) +
                                 " has " + (names.empty() ? "none" : one_of(names)),
                             form));
}

Result<void> check_parameters(const Url& url, const UrlForm& form) {
  for (const auto& [name, value] : url.query) {
    const UrlParameter* parameter = find_parameter(form, name);
    if (parameter == nullptr) return unknown_parameter(form);
    switch (parameter->kind) {
      case Kind::choice:
        if (value.empty() || std::ranges::count(parameter->choices, value) == 0) {
          return bad_url(name + " in the URL must be " + one_of(parameter->choices));
        }
        break;
      case Kind::path:
      case Kind::secret_file:
      case Kind::other_secret_file:
        if (!value.starts_with('/')) return bad_url(name + " in the URL must be an absolute path");
        break;
      case Kind::number:
        if (!util::parse_int(value, 0, INT32_MAX)) {
          return bad_url(name + " in the URL must be a number");
        }
        break;
      case Kind::word:
        break;
    }
  }
  return {};
}

// The user is not shown: who leaves out a colon has written the password there.
Result<void> check_user(const Url& url, const UrlForm& form) {
  const bool has_user = !url.user.empty();
  const bool has_password = !url.password.empty();
  if (form.user == User::none && (has_user || has_password)) {
    return bad_url("a " + url_of(form) + " URL has no user: " + std::string(form.example));
  }
  if (form.user == User::both && has_password && !has_user) {
    return bad_url("a password without a user; write " + url_of(form) + "USER@HOST");
  }
  if (form.user >= User::needs_password && has_user && !has_password) {
    return bad_url(
        "the password of the user in the URL is missing: use --password-file FILE, or "
        "password_file in the config file");
  }
  return {};
}

Result<void> take_hosts(Url& url, const UrlForm& form) {
  if (form.most_hosts == 0 && !url.hosts.empty()) {
    return bad_url("a " + url_of(form) + " URL has no host: " + std::string(form.example));
  }
  if (url.hosts.size() > form.most_hosts) {
    if (form.most_hosts == 1) {
      return bad_url(with_advice(url_of(form) + " takes one server", form));
    }
    return bad_url(std::to_string(url.hosts.size()) + " servers are too many; the most is " +
                   std::to_string(form.most_hosts));
  }
  if (form.port == 0) return {};
  if (url.hosts.empty()) url.hosts.push_back({"localhost", 0});
  for (HostPort& host : url.hosts) host.port = host.port == 0 ? form.port : host.port;
  return {};
}

// /app
Result<void> take_database(Url& url, const UrlForm& form) {
  const auto from = std::min(url.path.find_first_not_of('/'), url.path.size());
  const auto to = url.path.find_last_not_of('/') + 1;  // 0: nothing but slashes
  const std::string name = from < to ? url.path.substr(from, to - from) : "";
  if (name.empty()) {
    return bad_url("the database is missing: " + url_of(form) + "USER@HOST/DATABASE");
  }
  const auto length = std::ranges::count_if(name, [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80;  // not in the middle of a character
  });
  if (name.find_first_of("/\\") != std::string::npos || name.ends_with(' ') ||
      !util::is_utf8(name) || util::has_control(name) ||
      static_cast<std::size_t>(length) > kLongestDatabase) {
    return bad_url("the path of the URL is no name of a database, as in " +
                   std::string(form.example));
  }
  url.path = '/' + name;
  return {};
}

Result<void> take_path(Url& url, const UrlForm& form) {
  switch (form.path) {
    case Path::free:
      return {};
    case Path::number:
      if (url.path.size() < 2) url.path = "/0";
      if (util::parse_int(url.path.substr(1), 0, INT32_MAX)) return {};
      return bad_url("the path of the URL must be the number of a database, as in " + url_of(form) +
                     "HOST/2");
    case Path::socket:
      if (url.path.size() > 1) return {};
      return bad_url("the path of the socket is missing: " + std::string(form.example));
    case Path::database:
      return take_database(url, form);
  }
  return {};
}

}  // namespace

const UrlForm* find_form(std::span<const UrlForm> forms, std::string_view scheme) {
  const auto found =
      std::ranges::find_if(forms, [&](const UrlForm& form) { return form.scheme == scheme; });
  return found == forms.end() ? nullptr : &*found;
}

const UrlParameter* find_parameter(const UrlForm& form, std::string_view name) {
  const auto* const found = std::ranges::find_if(
      form.parameters, [&](const UrlParameter& one) { return one.name == name; });
  return name.empty() || found == form.parameters.end() ? nullptr : found;
}

Result<Url> complete_url(Url url, std::span<const UrlForm> forms) {
  const UrlForm* form = find_form(forms, url.scheme);
  if (form == nullptr) return unknown_scheme(url, forms);
  if (!form->refusal.empty()) return bad_url(std::string(form->refusal));
  if (auto ok = check_parameters(url, *form); !ok) return ok.error();
  if (auto ok = check_user(url, *form); !ok) return ok.error();
  if (auto ok = take_hosts(url, *form); !ok) return ok.error();
  if (auto ok = take_path(url, *form); !ok) return ok.error();
  return url;
}

}  // namespace dlock
