// A ZooKeeper client for oracles: shares no code with the one under test.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dlock::test {

struct ZnodeStat {
  std::int64_t created_zxid = 0;
  std::int64_t modified_zxid = 0;
  std::int64_t created_ms = 0;
  std::int64_t modified_ms = 0;
  std::int32_t version = 0;
  std::int32_t child_version = 0;
  std::int32_t acl_version = 0;
  std::int64_t session = 0;  // that owns it, if it is ephemeral
  std::int32_t data_length = 0;
  std::int32_t children = 0;
  std::int64_t children_zxid = 0;
};

/// As the wire has them; container is for parents that are to vanish once they are empty again.
enum class Znode {
  persistent = 0,
  ephemeral = 1,
  persistent_sequential = 2,
  ephemeral_sequential = 3,
  container = 4
};

/// One session with the server at `port` of 127.0.0.1, which is closed in the end.  It says nothing
/// while nobody asks, and has 60 s then.  One request at a time; throws std::runtime_error with the
/// server's word ("NoNode") if one fails, or is not answered within 20 s.
class ZooKeeperClient {
 public:
  explicit ZooKeeperClient(int port);
  ~ZooKeeperClient();
  ZooKeeperClient(const ZooKeeperClient&) = delete;
  ZooKeeperClient& operator=(const ZooKeeperClient&) = delete;

  /// Ends somebody else's session, as the server does when it has expired; gone when this returns.
  static void end_session(int port, std::int64_t session);

  std::int64_t session() const { return session_; }
  void add_digest(const std::string& user_and_password);

  /// An ACL is "world:anyone:cdrwa", or several, comma-separated.  Returns the path as it is now.
  std::string create(const std::string& path, const std::string& data = {},
                     Znode kind = Znode::persistent, const std::string& acl = "world:anyone:cdrwa");
  /// Every node on the way too, where it is missing.
  void create_all(const std::string& path);
  void remove(const std::string& path);
  /// With all that is below it.
  void remove_all(const std::string& path);
  void set(const std::string& path, const std::string& data);
  void set_acl(const std::string& path, const std::string& acl);

  bool exists(const std::string& path) { return stat(path).has_value(); }
  std::optional<ZnodeStat> stat(const std::string& path);
  /// Sorted by name; none where there is no such node.
  std::vector<std::string> children(const std::string& path);
  std::string data(const std::string& path);
  std::string acl(const std::string& path);

 private:
  ZooKeeperClient(int port, std::int64_t session, const std::string& password);
  class Reader;
  Reader call(int type, const std::string& body, const std::string& what);
  void send(const std::string& body);
  std::string receive();

  Fd fd_;
  std::int64_t session_ = 0;
  int calls_ = 0;
};

/// The answer of the server at `port` of 127.0.0.1 to a four-letter word; empty if there is none:
/// it may accept the word while it starts, and never answer.
std::string zookeeper_ask(int port, const std::string& word);

}  // namespace dlock::test
