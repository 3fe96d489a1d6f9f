// How the URLs of a backend are written, as data: what is the same in all of them is checked once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/result.hpp"
#include "core/url.hpp"

namespace dlock {

/// What may stand behind the ? of a URL.
struct UrlParameter {
  /// A path is absolute; the content of a secret file goes to Target::auth, in place of a password
  /// of the URL or beside it; the backend looks at a word.
  enum class Kind { choice, path, secret_file, other_secret_file, number, word };
  std::string_view name;
  Kind kind = Kind::path;
  std::array<std::string_view, 5> choices = {};
};

/// One way to write the URL of a backend.
struct UrlForm {
  /// needs_password: there is no user without a password.  both: nor a password without a user.
  enum class User { none, may_be, needs_password, both };
  /// free: the backend looks at it.
  enum class Path { free, number, database, socket };

  std::string_view scheme;
  std::string_view example;  // of a whole URL, for messages
  User user = User::may_be;
  std::size_t most_hosts = 1;  // 0: it has none
  std::uint16_t port = 0;      // where the URL names none; 0: there is no default, nor for the host
  Path path = Path::free;
  std::array<UrlParameter, 7> parameters = {};
  bool tls = false;
  std::string_view advice = {};   // for messages: how to get what URLs of this form cannot say
  std::string_view refusal = {};  // why there is no backend for this form, which people try
};

/// Null if none has this scheme.
const UrlForm* find_form(std::span<const UrlForm> forms, std::string_view scheme);

/// Null if there is no such parameter.
const UrlParameter* find_parameter(const UrlForm& form, std::string_view name);

/// The URL with what it leaves open: localhost, the port, the number of a database ("/0").
/// Errc::invalid says what its form forbids, and shows no text of it that can be a secret.  `forms`
/// are all of one backend, at least one.
Result<Url> complete_url(Url url, std::span<const UrlForm> forms);

}  // namespace dlock
