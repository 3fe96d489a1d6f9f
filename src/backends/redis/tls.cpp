// Whom.    The server is who it should be if its certificate leads to a CA we trust, is in force,
//          and bears the name or address in the URL.  OpenSSL checks all that within the
//          handshake, so that nothing, and no password before all, is said to anybody else.
// Wire.    OpenSSL reads and writes memory only.  The socket stays Connection's: with its
//          deadlines, with Cancel, and without the SIGPIPE that OpenSSL's write(2) would raise.
// Errors.  OpenSSL keeps a queue of them per thread, which must be empty before a call whose
//          failure is to be told from it.
#include "backends/redis/tls.hpp"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "backends/redis/openssl.hpp"
#include "core/trusted_file.hpp"
#include "util/fd.hpp"
#include "util/text.hpp"

namespace dlock::redis {
namespace {

using util::printable;

Error bad_files(std::string message) { return {Errc::invalid, std::move(message)}; }

// OpenSSL reports an alert of the server as an error of this number and more (RFC 8446, 6).
constexpr int kAlert = SSL_AD_REASON_OFFSET;

// Why the server may dislike our certificate: bad_certificate to certificate_unknown, unknown_ca,
// access_denied.
bool is_about_certificate(int alert) {
  return (alert >= 42 && alert <= 46) || alert == 48 || alert == 49;
}

// OpenSSL would ask for it on the terminal, for as long as it takes.
int no_passphrase(char*, int, int, void*) { return -1; }

class OpenSslTls final : public Tls {
 public:
  explicit OpenSslTls(const OpenSsl& lib) : lib_(lib) {}
  ~OpenSslTls() override {
    lib_.SSL_free(ssl_);
    lib_.SSL_CTX_free(context_);
  }
  OpenSslTls(const OpenSslTls&) = delete;
  OpenSslTls& operator=(const OpenSslTls&) = delete;

  Result<void> start(const std::string& host, const TlsFiles& files);

  Result<bool> shake_hands(std::string_view bytes) override;
  Result<void> encrypt(std::string_view text) override;
  Result<std::string> decrypt(std::string_view bytes) override;
  std::string take_output() override;
  std::optional<int> certificate_days() const override;

 private:
  Result<void> set_trust(const std::string& cacert);
  Result<void> set_own_certificate(const TlsFiles& files);
  Result<void> set_own_key(const TlsFiles& files);
  Result<void> set_name(std::string name);
  static int verify(X509_STORE_CTX* chain, void* self);

  void take_input(std::string_view bytes);
  std::string reason() const;
  Error not_set_up() const { return {Errc::unreachable, "TLS cannot be set up: " + reason()}; }
  Error distrust(long why) const;
  Error failure(const std::string& what) const;

  const OpenSsl& lib_;
  SSL_CTX* context_ = nullptr;
  SSL* ssl_ = nullptr;
  BIO* input_ = nullptr;  // ssl_ owns both
  BIO* output_ = nullptr;
  bool has_certificate_ = false;
  std::string cacert_;
  int depth_ = 0;          // of the certificate that was found wanting; 0 is the server's own
  bool answered_ = false;  // the server has said something
};

// "No such file or directory" is for the end of a line.
Result<void> check_readable(const std::string& what, const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd) return {};
  return bad_files("cannot read the " + what + ' ' + printable(path) + ": " + std::strerror(errno));
}

std::string OpenSslTls::reason() const {
  const char* text = lib_.ERR_reason_error_string(lib_.ERR_peek_error());
  return text != nullptr ? text : "no reason given";
}

Result<void> OpenSslTls::set_trust(const std::string& cacert) {
  // The outcome of this is what OpenSSL goes by: verify() only remembers where it failed.
  lib_.SSL_CTX_set_verify(context_, SSL_VERIFY_PEER, nullptr);
  lib_.SSL_CTX_set_cert_verify_callback(context_, verify, this);
  cacert_ = cacert;
  if (cacert.empty()) {
    // $SSL_CERT_FILE and $SSL_CERT_DIR, else the store of the distribution.
    if (lib_.SSL_CTX_set_default_verify_paths(context_) != 1) return not_set_up();
    return {};
  }
  if (auto ok = check_readable("CA certificate", cacert); !ok) return ok;
  if (lib_.SSL_CTX_load_verify_locations(context_, cacert.c_str(), nullptr) != 1) {
    return bad_files("no CA certificate in " + printable(cacert) + " (must be PEM): " + reason());
  }
  return {};
}

Result<void> OpenSslTls::set_own_certificate(const TlsFiles& files) {
  if (files.cert.empty()) return {};
  has_certificate_ = true;
  if (auto ok = check_readable("certificate", files.cert); !ok) return ok;
  if (lib_.SSL_CTX_use_certificate_chain_file(context_, files.cert.c_str()) != 1) {
    return bad_files("no certificate in " + printable(files.cert) + " (must be PEM): " + reason());
  }
  return set_own_key(files);
}

Result<void> OpenSslTls::set_own_key(const TlsFiles& files) {
  const auto key_text = read_key(files.key);
  if (!key_text) return key_text.error();
  const std::string& text = key_text.value();
  BIO* const memory = lib_.BIO_new_mem_buf(text.data(), static_cast<int>(text.size()));
  EVP_PKEY* const key = lib_.PEM_read_bio_PrivateKey(memory, nullptr, no_passphrase, nullptr);
  const bool ok = key != nullptr && lib_.SSL_CTX_use_PrivateKey(context_, key) == 1;
  lib_.EVP_PKEY_free(key);
  lib_.BIO_free(memory);
  if (ok) return {};
  return bad_files("the key in " + printable(files.key) + " cannot be used with " +
                   printable(files.cert) + " (must be PEM, without a passphrase): " + reason());
}

// What the certificate must bear; and for names, which of its certificates the server should show.
Result<void> OpenSslTls::set_name(std::string name) {
  // No certificate has the dot that ends a name in the DNS, nor the %eth0 of a link-local address.
  if (name.ends_with('.')) name.pop_back();
  const std::string address = name.substr(0, name.find('%'));
  if (lib_.X509_VERIFY_PARAM_set1_ip_asc(lib_.SSL_get0_param(ssl_), address.c_str()) == 1) {
    return {};
  }
  // To OpenSSL no name means any, and one that begins with a dot all that end so.
  if (name.empty() || name.starts_with('.')) {
    return bad_files("no certificate can be for the name " + util::in_quotes(name));
  }
  lib_.ERR_clear_error();
  lib_.SSL_set_hostflags(ssl_, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (lib_.SSL_set1_host(ssl_, name.c_str()) != 1 ||
      lib_.SSL_ctrl(ssl_, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data()) !=
          1) {
    return bad_files("no certificate can be for the name " + util::in_quotes(name) + ": " +
                     reason());
  }
  return {};
}

Result<void> OpenSslTls::start(const std::string& host, const TlsFiles& files) {
  lib_.ERR_clear_error();
  context_ = lib_.SSL_CTX_new(lib_.TLS_client_method());
  if (context_ == nullptr) return not_set_up();
  // The system's openssl.cnf may ask for more, and is heeded then.
  if (lib_.SSL_CTX_ctrl(context_, SSL_CTRL_GET_MIN_PROTO_VERSION, 0, nullptr) < TLS1_2_VERSION &&
      lib_.SSL_CTX_ctrl(context_, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, nullptr) != 1) {
    return not_set_up();
  }
  lib_.SSL_CTX_set_options(context_, SSL_OP_NO_RENEGOTIATION);
  if (auto ok = set_trust(files.cacert); !ok) return ok;
  if (auto ok = set_own_certificate(files); !ok) return ok;

  ssl_ = lib_.SSL_new(context_);
  if (ssl_ == nullptr) return not_set_up();
  input_ = lib_.BIO_new(lib_.BIO_s_mem());
  output_ = lib_.BIO_new(lib_.BIO_s_mem());
  if (input_ == nullptr || output_ == nullptr) {
    lib_.BIO_free(input_);
    lib_.BIO_free(output_);
    return not_set_up();
  }
  lib_.SSL_set_bio(ssl_, input_, output_);
  lib_.SSL_set_connect_state(ssl_);
  return set_name(host);
}

int OpenSslTls::verify(X509_STORE_CTX* chain, void* self) {
  auto& tls = *static_cast<OpenSslTls*>(self);
  const int outcome = tls.lib_.X509_verify_cert(chain);
  tls.depth_ = tls.lib_.X509_STORE_CTX_get_error_depth(chain);
  return outcome;
}

Error OpenSslTls::distrust(long why) const {
  const std::string whose = depth_ == 0 ? "its certificate " : "the certificate of its CA ";
  const std::string says = lib_.X509_verify_cert_error_string(why);
  const auto error = [](std::string message) {
    return Error{Errc::unreachable, std::move(message)};
  };
  switch (why) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return error(whose + "has expired");
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return error(whose + "is not valid yet; is the clock of this machine right?");
    case X509_V_ERR_HOSTNAME_MISMATCH:
      return error("its certificate is for another name");
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return error("its certificate is not for this address; is it for a name?");
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return error("its certificate is not trusted: " + says +
                   (cacert_.empty() ? " (name its CA with ?cacert=FILE)"
                                    : " (its CA is not in " + printable(cacert_) + ')'));
    default:
      return error(whose + "is not accepted: " + says);
  }
}

Error OpenSslTls::failure(const std::string& what) const {
  const long verified = lib_.SSL_get_verify_result(ssl_);
  if (verified != X509_V_OK) return distrust(verified);
  const int code = ERR_GET_REASON(lib_.ERR_peek_error());
  const int alert = code >= kAlert && code < kAlert + 256 ? code - kAlert : -1;
  if (code == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION || code == SSL_R_UNSUPPORTED_PROTOCOL) {
    return {Errc::unreachable,
            "the server speaks no TLS but versions that are too old: " + reason()};
  }
  if (code == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED) {
    return {Errc::denied, "the server wants a certificate of ours (?cert=FILE&key=FILE)"};
  }
  if (has_certificate_ && is_about_certificate(alert)) {
    return {Errc::denied, "the server does not accept our certificate: " + reason()};
  }
  // All that a server of TLS 1.2 says if it wants a certificate.
  const bool wants_certificate = !has_certificate_ && code == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE;
  return {Errc::unreachable,
          what + reason() +
              (wants_certificate ? " (perhaps it wants a certificate: ?cert=FILE&key=FILE)" : "")};
}

void OpenSslTls::take_input(std::string_view bytes) {
  lib_.ERR_clear_error();
  if (!bytes.empty()) lib_.BIO_write(input_, bytes.data(), static_cast<int>(bytes.size()));
}

Result<bool> OpenSslTls::shake_hands(std::string_view bytes) {
  // A server begins with a handshake record or an alert, whatever its version (RFC 8446, 5.1).
  if (!answered_ && !bytes.empty() && bytes[0] != 0x16 && bytes[0] != 0x15) {
    return Error{Errc::unreachable, "it does not speak TLS there"};
  }
  answered_ = answered_ || !bytes.empty();
  take_input(bytes);
  const int outcome = lib_.SSL_do_handshake(ssl_);
  if (outcome == 1 && lib_.SSL_get_verify_result(ssl_) == X509_V_OK) return true;
  if (lib_.SSL_get_error(ssl_, outcome) == SSL_ERROR_WANT_READ) return false;
  return failure("the TLS handshake failed: ");
}

Result<void> OpenSslTls::encrypt(std::string_view text) {
  lib_.ERR_clear_error();
  if (text.empty() || lib_.SSL_write(ssl_, text.data(), static_cast<int>(text.size())) > 0)
    return {};
  return failure("TLS failed: ");
}

Result<std::string> OpenSslTls::decrypt(std::string_view bytes) {
  take_input(bytes);
  std::string out;
  std::array<char, 16 * 1024> part;  // the most a record can hold
  for (;;) {
    const int got = lib_.SSL_read(ssl_, part.data(), static_cast<int>(part.size()));
    if (got > 0) {
      out.append(part.data(), static_cast<std::size_t>(got));
      continue;
    }
    const int error = lib_.SSL_get_error(ssl_, got);
    if (error == SSL_ERROR_WANT_READ) return out;
    // What was said before counts; the next call, or the end of the socket, tells of the rest.
    if (!out.empty()) return out;
    if (error == SSL_ERROR_ZERO_RETURN) {
      return Error{Errc::unreachable, "the server closed the connection"};
    }
    return failure("TLS failed: ");
  }
}

std::string OpenSslTls::take_output() {
  std::string out;
  std::array<char, 16 * 1024> part;
  for (;;) {
    const int got = lib_.BIO_read(output_, part.data(), static_cast<int>(part.size()));
    if (got <= 0) return out;
    out.append(part.data(), static_cast<std::size_t>(got));
  }
}

std::optional<int> OpenSslTls::certificate_days() const {
  X509* const certificate = lib_.SSL_get0_peer_certificate(ssl_);
  int days = 0;
  int seconds = 0;
  const bool is_known =
      certificate != nullptr &&
      lib_.ASN1_TIME_diff(&days, &seconds, nullptr, lib_.X509_get0_notAfter(certificate)) == 1;
  return is_known ? std::optional(days) : std::nullopt;
}

}  // namespace

Result<void> check_tls() { return {}; }

Result<std::unique_ptr<Tls>> start_tls(const std::string& host, const TlsFiles& files) {
  const auto library = load_openssl();
  if (!library) return library.error();
  auto tls = std::make_unique<OpenSslTls>(*library.value());
  if (auto ok = tls->start(host, files); !ok) return ok.error();
  return tls;
}

}  // namespace dlock::redis
