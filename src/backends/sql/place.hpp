// Where the locks of a database are: which servers, how to get in, which tables.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/backend.hpp"
#include "core/url_form.hpp"

namespace dlock::sql {

/// What the names of tables begin with, if nothing else is said.
inline constexpr std::string_view kDefaultPrefix = "dlock_";
inline constexpr std::size_t kLongestPrefix = 32;

struct Place {
  std::string location;  // as a URL without secrets
  std::string name;      // as BackendEntry::place() says
  std::string shown;     // for messages: "postgres db1:5432,db2:5432"
  std::vector<HostPort>
      hosts;           // a primary and its standbys; one that stands for the socket, if set
  std::string socket;  // its path; empty: none
  std::string user;
  std::string password;
  std::string database;
  std::string prefix;
  Millis connect_timeout{5'000};  // for one host
  /// Which of the hosts could be written to last: it is asked first.
  std::shared_ptr<std::atomic<std::size_t>> primary = std::make_shared<std::atomic<std::size_t>>(0);

  /// The host for messages: "postgres db1:5432", "mysql /run/mysqld/mysqld.sock".
  std::string shown_host(const HostPort& host) const;

  /// Of several hosts, the others are forgotten.
  void keep_only(const HostPort& host);

  /// Takes what is written alike in the URLs of all databases, and returns the whole URL, of one of
  /// `forms`.  Errc::invalid says what is wrong with it.
  Result<Url> begin(const Target& target, std::span<const UrlForm> forms);
  /// With what the URL that begin() has returned says of servers, unless there is a socket.
  void finish(Url url, std::string_view product);

 private:
  std::string product_;
};

}  // namespace dlock::sql
