#pragma once

#include <array>

#include "core/url_form.hpp"

namespace dlock::zookeeper {

inline constexpr std::string_view kNoTls = "dlock reaches ZooKeeper by zookeeper://, without TLS";

inline constexpr std::array kUrlForms{
    UrlForm{
        .scheme = "zookeeper",
        .example = "zookeeper://h1:2181,h2:2181,h3:2181/chroot",
        .user = UrlForm::User::both,
        .most_hosts = 32,
        .port = 2'181,
        .parameters = {{{"auth_file", UrlParameter::Kind::secret_file},
                        {"style", UrlParameter::Kind::choice, {"curator", "curator-rw", "kazoo"}}}},
        .advice = kNoTls},
    UrlForm{.scheme = "zookeepers", .refusal = kNoTls}};

}  // namespace dlock::zookeeper
