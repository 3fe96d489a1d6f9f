#pragma once

#include <array>

#include "core/url_form.hpp"

namespace dlock::postgres {

constexpr UrlForm url_form(std::string_view scheme, std::string_view example) {
  using Kind = UrlParameter::Kind;
  return {
      .scheme = scheme,
      .example = example,
      .most_hosts = 32,
      .port = 5'432,
      .path = UrlForm::Path::database,
      .parameters = {
          {{"socket"},
           {"sslmode", Kind::choice, {"disable", "prefer", "require", "verify-ca", "verify-full"}},
           {"sslrootcert"},
           {"sslcert"},
           {"sslkey"},
           {"pooler", Kind::choice, {"session"}},
           {"pg_advisory", Kind::word}}}};
}

inline constexpr std::array kUrlForms{
    url_form("postgres", "postgres://user@host/database"),
    url_form("postgres-row", "postgres-row://user@host/database")};

}  // namespace dlock::postgres
