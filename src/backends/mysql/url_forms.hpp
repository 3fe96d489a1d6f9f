#pragma once

#include <array>

#include "core/url_form.hpp"

namespace dlock::mysql {

constexpr UrlForm url_form(std::string_view scheme, std::string_view example) {
  return {.scheme = scheme,
          .example = example,
          .most_hosts = 32,
          .port = 3'306,
          .path = UrlForm::Path::database,
          .parameters = {{{"socket"},
                          {"tls", UrlParameter::Kind::choice, {"off", "preferred", "on", "verify"}},
                          {"ca"},
                          {"cert"},
                          {"key"}}}};
}

inline constexpr std::array kUrlForms{
    url_form("mysql", "mysql://user@host/database"),
    url_form("mysql-row", "mysql-row://user@host/database"),
    url_form("mysql-version", "mysql-version://user@host/database")};

}  // namespace dlock::mysql
