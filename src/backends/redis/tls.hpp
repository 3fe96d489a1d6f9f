// TLS without a socket: what is to be said becomes bytes for the wire, and the other way round.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace dlock::redis {

/// Absolute paths of PEM files; empty where there is none.
struct TlsFiles {
  std::string cacert;  // whom to trust, instead of whom this machine trusts
  std::string cert;    // who we are, for a server that wants to know
  std::string key;     // of `cert`, without a passphrase; nobody else may read it
};

/// One connection, as its client.  There is no way to leave out that the server is verified.
/// Messages do not name the server: the caller knows which of its names to put before them.
class Tls {
 public:
  virtual ~Tls() = default;

  /// Takes the bytes that have come and goes on with the handshake; the first time there are none.
  /// True once it is done, false if more must come.  Errc::unreachable, denied (our certificate).
  /// In any case take_output() has something for the server then: also of a failure it is told.
  virtual Result<bool> shake_hands(std::string_view bytes) = 0;

  /// For take_output().
  virtual Result<void> encrypt(std::string_view text) = 0;

  /// Takes the bytes that have come; returns all that can be read by now, which may be nothing: the
  /// server sends session tickets and new keys of its own accord.  Errc::unreachable, denied.
  virtual Result<std::string> decrypt(std::string_view bytes) = 0;

  /// What is to be sent.
  virtual std::string take_output() = 0;

  /// In how many days the server's certificate ends; after the handshake.
  virtual std::optional<int> certificate_days() const = 0;
};

/// Errc::invalid where this dlock was built without TLS.
Result<void> check_tls();

/// For a connection to the server of this name or address, which its certificate must bear.
/// Errc::invalid or denied for files that cannot be used, unreachable if OpenSSL is not installed.
Result<std::unique_ptr<Tls>> start_tls(const std::string& host, const TlsFiles& files);

}  // namespace dlock::redis
