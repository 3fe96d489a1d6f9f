// What a Redis server answered.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backends/redis/address.hpp"
#include "core/result.hpp"

namespace dlock::redis {

struct Reply {
  enum class Kind { nil, integer, text, error, array };

  Kind kind = Kind::nil;
  std::int64_t integer = 0;
  std::string text;  // of a text, a status or an error
  std::vector<Reply> items;

  bool is_error() const { return kind == Kind::error; }

  /// True if the reply has this shape, in the letters of the protocol: ":" is an integer, "$" a
  /// text, "*" an array; "*$*" is an array that begins with a text and an array, and may go on.
  bool is(std::string_view shape) const;

  /// An error that begins so: with a code, or after ERR.
  bool says(std::string_view words) const;
  /// An error by which this server, or a proxy before it, does not take the command from us.
  bool refuses(std::string_view command) const;

  /// A server can answer anything: what is not there reads as nothing.
  const Reply& at(std::size_t index) const;
  /// Numbers also from text; `otherwise` for anything else.
  std::int64_t number(std::int64_t otherwise = 0) const;
};

/// What the error `text` of a server means to a user, and what to do.  Never with its password,
/// which a server may repeat.
Error server_error(const Address& server, const std::string& text);

/// What a server says that is no master, or not any more.
bool comes_from_replica(const Reply& reply);
/// True for what server_error() made of that.
bool is_replica(const Error& error);

}  // namespace dlock::redis
