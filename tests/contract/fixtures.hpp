// The lock services that the contract is checked with.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "core/backend.hpp"
#include "support/temp_dir.hpp"
#include "support/test_server.hpp"

namespace dlock::test {

/// One empty lock service, which ends with this object.
class Service {
 public:
  virtual ~Service() = default;
  virtual const Traits& traits() const = 0;
  /// A client of its own, as another process would be.
  virtual std::unique_ptr<Backend> connect(Millis connect_timeout = Millis{5'000}) = 0;
  /// What can be stopped and started again; none where the kernel is the service.
  virtual std::vector<TestServer*> servers() { return {}; }
  /// A client that looks once knows whether a lease has expired.
  virtual bool has_one_clock() const { return true; }
  /// Loses all that it knows of locks, as if it was set up anew.  False: it cannot do that.
  virtual bool forget() { return false; }
};

struct ServiceKind {
  std::string name;
  std::unique_ptr<Service> (*start)();
};

std::vector<ServiceKind> service_kinds();
/// Those that have servers.
std::vector<ServiceKind> server_kinds();
inline void PrintTo(const ServiceKind& kind, std::ostream* out) { *out << kind.name; }

/// Opens a backend of the test registry; a test failure and null if that fails.
std::unique_ptr<Backend> open_url(const std::string& url, Millis connect_timeout = Millis{5'000},
                                  std::optional<std::string> prefix = {});

}  // namespace dlock::test
