// The outcome of an operation: a value, or why there is none.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace dlock {

/// Why an operation did not do what was asked.  Code switches on this; people read the message.
enum class Errc {
  busy,         // somebody else holds it, and the deadline passed
  cancelled,    // Cancel fired while waiting
  lost,         // it was ours, and it is not (or cannot be shown to be) any longer
  unreachable,  // no answer, or no answer from enough servers
  denied,       // the server refused the credentials or the permission
  conflict,     // the key is in use in another mode, or with another number of slots
  unsupported,  // this backend cannot do that: see Traits
  invalid,      // a bad key, option or URL; retrying cannot help
};

struct Error {
  Errc code;
  std::string message;    // lower case, no full stop, names the server or path; never a secret
  bool is_full = false;   // unreachable: the service is well, and has no room for one more client
  bool in_order = false;  // lost: it was given back by somebody who has its token
};

/// A T or an Error.  Has the member names of std::expected, so that C++23 can replace it.
template <class T>
class [[nodiscard]] Result {
 public:
  // So that a unique_ptr<FileLease> can be returned as a unique_ptr<Lease>.  Not whatever T can be
  // constructed from: a bool can be from a Result.
  template <class U = T>
  requires std::convertible_to<U&&, T> Result(U&& value)
      : state_(std::in_place_index<0>, std::forward<U>(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() { return std::get<0>(state_); }
  const T& value() const { return std::get<0>(state_); }
  T& operator*() { return value(); }
  T* operator->() { return &value(); }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool has_value() const { return !error_; }
  explicit operator bool() const { return has_value(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace dlock
