#pragma once

#include <array>

#include "core/url_form.hpp"

namespace dlock::redis {

inline constexpr std::size_t kMostServers = 32;

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
            .parameters = {{{"cacert"}, {"cert"}, {"key"}}},
            .tls = true,
            .advice = "redlock:// is for several servers"},
    UrlForm{.scheme = "redis+unix",
            .example = "redis+unix:///run/redis.sock",
            .user = UrlForm::User::needs_password,
            .most_hosts = 0,
            .path = UrlForm::Path::socket,
            .parameters = {{{"db", UrlParameter::Kind::number}}}}};

inline constexpr std::array kRedlockUrlForms{UrlForm{
    .scheme = "redlock",
    .example = "redlock://h1:6379,h2:6379,h3:6379/0",
    .most_hosts = kMostServers,
    .advice = "for TLS or unix sockets list a rediss:// or redis+unix:// URL for each server "
              "with --server"}};

}  // namespace dlock::redis
