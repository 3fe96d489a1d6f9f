// The lock services that the contract is checked with.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "backends/sql/database.hpp"
#include "core/backend.hpp"
#include "support/temp_dir.hpp"
#include "support/test_server.hpp"

namespace dlock::test {

/// Faults of a service.
enum class Fault {
  killed,          // and started again
  stopped,         // and resumed
  sessions_ended,  // by an administrator, all of them
  full,            // no client gets a connection
  read_only,       // the server is a standby
};

/// One empty lock service, which ends with this object.
class Service {
 public:
  virtual ~Service() = default;
  virtual const Traits& traits() const = 0;
  /// A client of its own, as another process would be.
  virtual std::unique_ptr<Backend> connect(Millis connect_timeout = Millis{5'000}) = 0;
  /// The same by another port of 127.0.0.1, as that of a proxy, which can read what is said.  For
  /// the one_server_kinds().
  virtual std::unique_ptr<Backend> connect_to(int port);
  /// Text that each request about a lock has.
  virtual std::string in_requests() const { return "dlock"; }
  /// What can be stopped and started again; none where the kernel is the service.
  virtual std::vector<TestServer*> servers() { return {}; }
  /// A client that looks once knows whether a lease has expired.
  virtual bool has_one_clock() const { return true; }
  /// Loses all that it knows of locks, as if it was set up anew.  False: it cannot do that.
  virtual bool forget() { return false; }

  /// The fault is there when this returns; killed and stopped for all that have servers, the others
  /// for the sql_kinds().
  virtual void provoke(Fault fault);
  virtual void mend(Fault fault);
  /// What is said to it, if it is a database.
  virtual std::shared_ptr<const sql::Database> database() { return nullptr; }
  /// A lease outlives it, if it is short.
  virtual bool survives(Fault) const { return true; }
};

struct ServiceKind {
  std::string name;
  std::unique_ptr<Service> (*start)();
};

std::vector<ServiceKind> service_kinds();
/// Those that have servers.
std::vector<ServiceKind> server_kinds();
/// Those that have one server.
std::vector<ServiceKind> one_server_kinds();
/// Those that are databases, with the methods whose names end so.
std::vector<ServiceKind> sql_kinds(std::string_view end = "");
inline void PrintTo(const ServiceKind& kind, std::ostream* out) { *out << kind.name; }

/// Opens a backend of the test registry; a test failure and null if that fails.
std::unique_ptr<Backend> open_url(const std::string& url, Millis connect_timeout = Millis{5'000},
                                  std::optional<std::string> prefix = {});

}  // namespace dlock::test
