#pragma once

#include <array>

#include "core/url_form.hpp"

namespace dlock::redis {

inline constexpr std::size_t kMostServers = 32;

using UrlParameters = decltype(UrlForm::parameters);

inline constexpr std::array kTlsParameters{"cacert", "cert", "key"};

inline constexpr UrlParameters kOfSentinels{
    {{"wait_replicas", UrlParameter::Kind::number},
     {"sentinel_user", UrlParameter::Kind::word},
     {"sentinel_password_file", UrlParameter::Kind::other_secret_file}}};

/// These, and where the certificates are; there is room for them.
constexpr UrlParameters with_tls(UrlParameters parameters) {
  std::size_t at = 0;
  while (!parameters.at(at).name.empty()) ++at;
  for (const char* name : kTlsParameters) parameters.at(at++) = {name};
  return parameters;
}

inline constexpr std::array kUrlForms{
    UrlForm{.scheme = "redis",
            .example = "redis://host:6379/0",
            .user = UrlForm::User::needs_password,
            .port = 6'379,
            .path = UrlForm::Path::number,
            .advice = "rediss:// is for TLS, redlock:// for several servers"},
    UrlForm{.scheme = "rediss",
            .example = "rediss://host:6379/0",
            .user = UrlForm::User::needs_password,
            .port = 6'379,
            .path = UrlForm::Path::number,
            .parameters = with_tls({}),
            .tls = true,
            .advice = "redlock:// is for several servers"},
    UrlForm{.scheme = "redis+unix",
            .example = "redis+unix:///run/redis.sock",
            .user = UrlForm::User::needs_password,
            .most_hosts = 0,
            .path = UrlForm::Path::socket,
            .parameters = {{{"db", UrlParameter::Kind::number}}}},
    UrlForm{.scheme = "redis+sentinel",
            .example = "redis+sentinel://s1,s2,s3/mymaster",
            .user = UrlForm::User::needs_password,
            .most_hosts = kMostServers,
            .port = 26'379,
            .parameters = kOfSentinels,
            .advice = "rediss+sentinel:// is for TLS"},
    UrlForm{.scheme = "rediss+sentinel",
            .example = "rediss+sentinel://s1,s2,s3/mymaster",
            .user = UrlForm::User::needs_password,
            .most_hosts = kMostServers,
            .port = 26'379,
            .parameters = with_tls(kOfSentinels),
            .tls = true}};

inline constexpr std::array kRedlockUrlForms{UrlForm{
    .scheme = "redlock",
    .example = "redlock://h1:6379,h2:6379,h3:6379/0",
    .most_hosts = kMostServers,
    .advice = "for TLS or unix sockets list a rediss:// or redis+unix:// URL for each server "
              "with --server"}};

}  // namespace dlock::redis
