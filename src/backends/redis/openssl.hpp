// The functions of OpenSSL that tls.cpp needs, loaded when they are first asked for.  Those of
// libcrypto are among them: libssl brings it.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "core/result.hpp"
#include "util/dynamic_library.hpp"

namespace dlock::redis {

struct OpenSsl : util::DynamicLibrary {
  using DynamicLibrary::DynamicLibrary;

  decltype(&::ASN1_TIME_diff) ASN1_TIME_diff = find("ASN1_TIME_diff");
  decltype(&::BIO_free) BIO_free = find("BIO_free");
  decltype(&::BIO_new) BIO_new = find("BIO_new");
  decltype(&::BIO_new_mem_buf) BIO_new_mem_buf = find("BIO_new_mem_buf");
  decltype(&::BIO_read) BIO_read = find("BIO_read");
  decltype(&::BIO_s_mem) BIO_s_mem = find("BIO_s_mem");
  decltype(&::BIO_write) BIO_write = find("BIO_write");
  decltype(&::ERR_clear_error) ERR_clear_error = find("ERR_clear_error");
  decltype(&::ERR_peek_error) ERR_peek_error = find("ERR_peek_error");
  decltype(&::ERR_reason_error_string) ERR_reason_error_string = find("ERR_reason_error_string");
  decltype(&::EVP_PKEY_free) EVP_PKEY_free = find("EVP_PKEY_free");
  decltype(&::OPENSSL_init_ssl) OPENSSL_init_ssl = find("OPENSSL_init_ssl");
  decltype(&::PEM_read_bio_PrivateKey) PEM_read_bio_PrivateKey = find("PEM_read_bio_PrivateKey");
  decltype(&::SSL_CTX_ctrl) SSL_CTX_ctrl = find("SSL_CTX_ctrl");
  decltype(&::SSL_CTX_free) SSL_CTX_free = find("SSL_CTX_free");
  decltype(&::SSL_CTX_load_verify_locations) SSL_CTX_load_verify_locations =
      find("SSL_CTX_load_verify_locations");
  decltype(&::SSL_CTX_new) SSL_CTX_new = find("SSL_CTX_new");
  decltype(&::SSL_CTX_set_cert_verify_callback) SSL_CTX_set_cert_verify_callback =
      find("SSL_CTX_set_cert_verify_callback");
  decltype(&::SSL_CTX_set_default_verify_paths) SSL_CTX_set_default_verify_paths =
      find("SSL_CTX_set_default_verify_paths");
  decltype(&::SSL_CTX_set_options) SSL_CTX_set_options = find("SSL_CTX_set_options");
  decltype(&::SSL_CTX_set_verify) SSL_CTX_set_verify = find("SSL_CTX_set_verify");
  decltype(&::SSL_CTX_use_PrivateKey) SSL_CTX_use_PrivateKey = find("SSL_CTX_use_PrivateKey");
  decltype(&::SSL_CTX_use_certificate_chain_file) SSL_CTX_use_certificate_chain_file =
      find("SSL_CTX_use_certificate_chain_file");
  decltype(&::SSL_ctrl) SSL_ctrl = find("SSL_ctrl");
  decltype(&::SSL_do_handshake) SSL_do_handshake = find("SSL_do_handshake");
  decltype(&::SSL_free) SSL_free = find("SSL_free");
  decltype(&::SSL_get0_param) SSL_get0_param = find("SSL_get0_param");
  decltype(&::SSL_get0_peer_certificate) SSL_get0_peer_certificate =
      find("SSL_get0_peer_certificate");
  decltype(&::SSL_get_error) SSL_get_error = find("SSL_get_error");
  decltype(&::SSL_get_verify_result) SSL_get_verify_result = find("SSL_get_verify_result");
  decltype(&::SSL_new) SSL_new = find("SSL_new");
  decltype(&::SSL_read) SSL_read = find("SSL_read");
  decltype(&::SSL_set1_host) SSL_set1_host = find("SSL_set1_host");
  decltype(&::SSL_set_bio) SSL_set_bio = find("SSL_set_bio");
  decltype(&::SSL_set_connect_state) SSL_set_connect_state = find("SSL_set_connect_state");
  decltype(&::SSL_set_hostflags) SSL_set_hostflags = find("SSL_set_hostflags");
  decltype(&::SSL_write) SSL_write = find("SSL_write");
  decltype(&::TLS_client_method) TLS_client_method = find("TLS_client_method");
  decltype(&::X509_STORE_CTX_get_error_depth) X509_STORE_CTX_get_error_depth =
      find("X509_STORE_CTX_get_error_depth");
  decltype(&::X509_VERIFY_PARAM_set1_ip_asc) X509_VERIFY_PARAM_set1_ip_asc =
      find("X509_VERIFY_PARAM_set1_ip_asc");
  decltype(&::X509_get0_notAfter) X509_get0_notAfter = find("X509_get0_notAfter");
  decltype(&::X509_verify_cert) X509_verify_cert = find("X509_verify_cert");
  decltype(&::X509_verify_cert_error_string) X509_verify_cert_error_string =
      find("X509_verify_cert_error_string");
};

/// Stays loaded from then on.  Errc::unreachable, with what the linker says, if it cannot be had.
Result<const OpenSsl*> load_openssl();

}  // namespace dlock::redis
