// The functions of the client library that the connection needs, loaded when they are first asked
// for.
#pragma once

#include <mysql.h>
#ifndef LIBMARIADB
#include <client_plugin.h>
#endif

#include "core/result.hpp"
#include "util/dynamic_library.hpp"

namespace dlock::mysql {

struct Library : util::DynamicLibrary {
  using DynamicLibrary::DynamicLibrary;

#ifdef LIBMARIADB
  // Not in its headers: calls the function after each read (0) and write (1).
  int (*ma_pvio_register_callback)(my_bool,
                                   void (*)(int, MYSQL*, const unsigned char*,
                                            std::size_t)) = find("ma_pvio_register_callback");
#endif
  decltype(&::mysql_client_find_plugin) mysql_client_find_plugin = find("mysql_client_find_plugin");
  decltype(&::mysql_close) mysql_close = find("mysql_close");
  decltype(&::mysql_errno) mysql_errno = find("mysql_errno");
  decltype(&::mysql_error) mysql_error = find("mysql_error");
  decltype(&::mysql_fetch_lengths) mysql_fetch_lengths = find("mysql_fetch_lengths");
  decltype(&::mysql_fetch_row) mysql_fetch_row = find("mysql_fetch_row");
  decltype(&::mysql_field_count) mysql_field_count = find("mysql_field_count");
  decltype(&::mysql_free_result) mysql_free_result = find("mysql_free_result");
  decltype(&::mysql_get_ssl_cipher) mysql_get_ssl_cipher = find("mysql_get_ssl_cipher");
  decltype(&::mysql_init) mysql_init = find("mysql_init");
  decltype(&::mysql_next_result) mysql_next_result = find("mysql_next_result");
  decltype(&::mysql_num_fields) mysql_num_fields = find("mysql_num_fields");
  decltype(&::mysql_options) mysql_options = find("mysql_options");
  decltype(&::mysql_real_connect) mysql_real_connect = find("mysql_real_connect");
  decltype(&::mysql_real_query) mysql_real_query = find("mysql_real_query");
  decltype(&::mysql_server_init) mysql_server_init = find("mysql_server_init");
  decltype(&::mysql_thread_end) mysql_thread_end = find("mysql_thread_end");
  decltype(&::mysql_thread_id) mysql_thread_id = find("mysql_thread_id");
  decltype(&::mysql_thread_init) mysql_thread_init = find("mysql_thread_init");
  decltype(&::mysql_use_result) mysql_use_result = find("mysql_use_result");
};

/// Stays loaded from then on.  May be called by any thread.  Errc::unsupported, with what the
/// linker says and what to install, if it cannot be had.
Result<const Library*> load_library();

}  // namespace dlock::mysql
