#pragma once

#include <array>

#include "core/url_form.hpp"

namespace dlock::file {

inline constexpr std::array kUrlForms{
    UrlForm{.scheme = "file",
            .example = "file:///var/lock/jobs",
            .user = UrlForm::User::none,
            .most_hosts = 0,
            .parameters = {{{"trust", UrlParameter::Kind::choice, {"all"}}}}}};

}  // namespace dlock::file
