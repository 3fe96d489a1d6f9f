#include "fixtures.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>

#include "backends/file/file_backend.hpp"
#include "backends/mysql/database.hpp"
#include "backends/postgres/database.hpp"
#include "core/sharded_backend.hpp"
#include "support/galera_cluster.hpp"
#include "support/mysql_server.hpp"
#include "support/postgres_server.hpp"
#include "support/redis_server.hpp"
#include "support/test_registry.hpp"
#include "support/zookeeper_client.hpp"
#include "support/zookeeper_server.hpp"

namespace dlock::test {
namespace {

// The row of a backend; a waiter of the file backend looks more often, so that no test waits for
// it.
BackendEntry entry_of(std::string_view url) {
  BackendEntry entry = *find_backend(url.substr(0, url.find(':')));
  if (entry.name != "file") return entry;
  entry.open = [](const Target& target, Deadline, Cancel) {
    constexpr file::WaitIntervals kIntervals{.holders = Millis{100},
                                             .until_holder_seen = Millis{50}};
    return file::open_with(target, kIntervals);
  };
  return entry;
}

class UrlService final : public Service {
 public:
  // {} in `url` becomes a directory.
  UrlService(const std::string& url, const std::string& parent) : dir_(parent) {
    std::size_t from = 0;
    for (auto at = url.find("{}"); at != std::string::npos; at = url.find("{}", from)) {
      url_ += url.substr(from, at - from) + dir_.path();
      from = at + 2;
    }
    url_ += url.substr(from);
  }
  const Traits& traits() const override {
    return find_backend(url_.substr(0, url_.find(':')))->traits;
  }
  std::unique_ptr<Backend> connect(Millis patience) override { return open_url(url_, patience); }
  bool forget() override {
    if (!url_.starts_with("file:")) return false;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
      std::filesystem::remove_all(entry);
    }
    return true;
  }

 private:
  TempDir dir_;
  std::string url_;
};

std::string with_port(std::string url, int from, int to) {
  const std::string port = ':' + std::to_string(from);
  return url.replace(url.rfind(port), port.size(), ':' + std::to_string(to));
}

class RedisService final : public Service {
 public:
  const Traits& traits() const override { return find_backend("redis")->traits; }
  std::unique_ptr<Backend> connect_to(int port) override {
    return open_url(with_port(server_.url(), server_.port(), port));
  }
  std::unique_ptr<Backend> connect(Millis patience) override {
    return open_url(server_.url(), patience);
  }
  std::vector<TestServer*> servers() override { return {&server_}; }
  bool forget() override { return server_.command("FLUSHALL") == "OK"; }
  bool survives(Fault fault) const override { return fault != Fault::killed; }  // it keeps no file

 private:
  RedisServer server_;
};

class RedlockService final : public Service {
 public:
  const Traits& traits() const override { return find_backend("redlock")->traits; }
  std::unique_ptr<Backend> connect(Millis patience) override {
    std::string url = "redlock://";
    for (const RedisServer& server : servers_) {
      url += (url.ends_with('/') ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(server.port());
    }
    return open_url(url, patience);
  }
  std::vector<TestServer*> servers() override { return {&servers_[0], &servers_[1], &servers_[2]}; }
  bool forget() override {
    return std::all_of(servers_.begin(), servers_.end(),
                       [](const auto& server) { return server.command("FLUSHALL") == "OK"; });
  }
  bool survives(Fault fault) const override { return fault != Fault::killed; }

 private:
  std::array<RedisServer, 3> servers_;
};

// A subtree of its own of the server that all tests of this process share.
class ZooKeeperService final : public Service {
 public:
  ZooKeeperService() {
    static int services = 0;
    root_ = "/contract" + std::to_string(++services);
    ZooKeeperClient(server_->port()).create(root_);
  }
  ~ZooKeeperService() override {
    if (!server_->disturbed()) server_->clear();
  }
  const Traits& traits() const override { return find_backend("zookeeper")->traits; }
  std::unique_ptr<Backend> connect_to(int port) override {
    return open_url(with_port(server_->url(), server_->port(), port) + root_);
  }
  std::unique_ptr<Backend> connect(Millis patience) override {
    return open_url(server_->url() + root_, patience);
  }
  std::vector<TestServer*> servers() override { return {server_.get()}; }

 private:
  std::shared_ptr<ZooKeeperServer> server_ = shared_server<ZooKeeperServer>();
  std::string root_;
};

// Three databases that share the keys.
class ShardedService final : public Service {
 public:
  // {} in `url` becomes the directory of a shard.
  explicit ShardedService(const std::string& url) : entry_(entry_of(url)) {
    const auto at = url.find("{}");
    for (const TempDir& dir : dirs_) {
      const std::string its = url.substr(0, at) + dir.path() + url.substr(at + 2);
      target_.shards.push_back({.url = parse_url(its).value()});
    }
  }
  const Traits& traits() const override { return entry_.traits; }
  std::unique_ptr<Backend> connect(Millis) override {
    auto backend = open_backend(entry_, target_, after(Clock::now(), Millis{5'000}), Cancel());
    if (backend) return std::move(*backend);
    ADD_FAILURE() << backend.error().message;
    return nullptr;
  }

 private:
  std::array<TempDir, 3> dirs_;
  const BackendEntry entry_;
  Target target_;
};

// What an administrator may have chosen must not matter.
MysqlOptions strange_settings() {
  return {
      .settings = {"sql_mode=ANSI_QUOTES,STRICT_ALL_TABLES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES",
                   "transaction_isolation=SERIALIZABLE", "default_time_zone=+05:30", "autocommit=0",
                   "innodb_lock_wait_timeout=1", "wait_timeout=2", "completion_type=CHAIN",
                   "init_connect=SET SESSION time_zone='-08:00', sql_safe_updates=1"}};
}

// The server with strange settings that all tests of this process share.
class StrangeMysqlServer final : public MysqlServer {
 public:
  StrangeMysqlServer() : MysqlServer(strange_settings()) {}
};

// A database of its own of such a server.
class MysqlService final : public Service {
 public:
  MysqlService(const std::string& method, std::shared_ptr<MysqlServer> server)
      : method_(method), server_(std::move(server)) {
    static int services = 0;
    database_ = "contract" + std::to_string(++services);
    server_->ask("CREATE DATABASE " + database_);
  }
  ~MysqlService() override {
    if (!server_->disturbed()) server_->ask("DROP DATABASE " + database_);
  }
  const Traits& traits() const override { return find_backend("mysql-" + method_)->traits; }
  std::unique_ptr<Backend> connect(Millis patience) override {
    return open_url(server_->url(method_, "app:sesame", database_), patience);
  }
  // MySQL lets a user in without TLS who has logged in with it.
  std::unique_ptr<Backend> connect_to(int port) override {
    if (!MysqlServer::is_mariadb())
      (void)connect(Millis{5'000})->inspect("job", after(Clock::now(), Millis{5'000}));
    const std::string url = server_->url(method_, "app:sesame", database_) + "?tls=off";
    return open_url(with_port(url, server_->port(), port));
  }
  std::string in_requests() const override { return "locks"; }
  std::vector<TestServer*> servers() override { return {server_.get()}; }
  bool forget() override {
    server_->ask("DROP TABLE IF EXISTS " + database_ + ".dlock_keys, " + database_ +
                 ".dlock_locks");
    return true;
  }
  std::shared_ptr<const sql::Database> database() override {
    const Target target{.url = parse_url(server_->url("table", "app:sesame", database_)).value()};
    return std::make_shared<const mysql::MysqlDatabase>(
        std::make_shared<const mysql::Place>(mysql::make_place(target).value()),
        mysql::Method::table);
  }
  void provoke(Fault fault) override;
  void mend(Fault fault) override;
  bool survives(Fault fault) const override {
    return method_ != "row" || (fault != Fault::killed && fault != Fault::sessions_ended);
  }

 private:
  std::string method_;
  std::shared_ptr<MysqlServer> server_;
  std::string database_;
  std::string most_connections_;
  std::vector<std::unique_ptr<Backend>> crowd_;
};

void MysqlService::provoke(Fault fault) {
  if (fault == Fault::sessions_ended) {
    std::istringstream ids(
        server_->ask("SELECT id FROM information_schema.processlist WHERE user = 'app'"));
    for (std::string id; ids >> id;) server_->ask("KILL " + id);
  } else if (fault == Fault::full) {
    most_connections_ = server_->ask("SELECT @@max_connections");
    server_->ask("SET GLOBAL max_connections = 10");
    for (bool is_full = false; !is_full;) {
      crowd_.push_back(connect(Millis{5'000}));
      const auto answer = crowd_.back()->inspect("job", after(Clock::now(), Millis{5'000}));
      is_full = !answer && answer.error().message.find("max_connections") != std::string::npos;
    }
  } else if (fault == Fault::read_only) {
    server_->ask("SET GLOBAL read_only = 1");
  } else {
    Service::provoke(fault);
  }
}

void MysqlService::mend(Fault fault) {
  if (fault == Fault::sessions_ended) {
  } else if (fault == Fault::full) {
    crowd_.clear();
    server_->ask("SET GLOBAL max_connections = " + most_connections_);
  } else if (fault == Fault::read_only) {
    server_->ask("SET GLOBAL read_only = 0");
  } else {
    Service::mend(fault);
  }
}

// What an administrator may have set, and dlock must not depend on.
class StrangePostgresServer final : public PostgresServer {
 public:
  StrangePostgresServer()
      : PostgresServer(
            {"default_transaction_isolation=serializable", "default_transaction_read_only=on",
             "statement_timeout=200ms", "lock_timeout=50ms", "idle_session_timeout=300ms",
             "idle_in_transaction_session_timeout=300ms", "synchronous_commit=off",
             "timezone=Asia/Kathmandu", "datestyle=German", "intervalstyle=iso_8601",
             "standard_conforming_strings=off", "deadlock_timeout=10ms", "extra_float_digits=0",
             "bytea_output=escape", "max_locks_per_transaction=10"}) {}
};

// Tables of its own in the server that all tests of this process share: to make a database takes
// longer than most tests.
class PostgresService final : public Service {
 public:
  PostgresService(std::string method, std::shared_ptr<PostgresServer> server, std::string encoding)
      : method_(std::move(method)),
        database_("in_" + encoding),
        prefix_("t" + std::to_string(++services_) + '_'),
        server_(std::move(server)) {
    if (server_->ask("SELECT 1 FROM pg_database WHERE datname = '" + database_ + '\'').empty()) {
      server_->ask("CREATE DATABASE " + database_ + " OWNER app TEMPLATE template0 ENCODING '" +
                   encoding + '\'');
    }
  }
  const Traits& traits() const override {
    return find_backend(method_ == "table" ? "postgres" : "postgres-" + method_)->traits;
  }
  std::unique_ptr<Backend> connect(Millis patience) override {
    return open_url(server_->url(method_, "app:sesame", database_), patience, prefix_);
  }
  std::unique_ptr<Backend> connect_to(int port) override {
    return open_url(
        with_port(server_->url(method_, "app:sesame", database_), server_->port(), port),
        Millis{5'000}, prefix_);
  }
  std::string in_requests() const override { return "locks"; }
  std::vector<TestServer*> servers() override { return {server_.get()}; }
  bool forget() override {
    server_->ask("DROP TABLE IF EXISTS " + prefix_ + "keys, " + prefix_ + "locks", database_);
    return true;
  }
  std::shared_ptr<const sql::Database> database() override {
    const Target target{.url = parse_url(server_->url("table", "app:sesame", database_)).value(),
                        .prefix = prefix_};
    return std::make_shared<const postgres::PostgresDatabase>(
        std::make_shared<const postgres::Place>(postgres::make_place(target).value()),
        postgres::Method::table);
  }
  void provoke(Fault fault) override;
  void mend(Fault fault) override;
  // A server that becomes a standby starts anew.
  bool survives(Fault fault) const override {
    return method_ != "row" || fault == Fault::stopped || fault == Fault::full;
  }

 private:
  static inline int services_ = 0;
  const std::string method_;
  const std::string database_;
  const std::string prefix_;
  const std::shared_ptr<PostgresServer> server_;
};

void PostgresService::provoke(Fault fault) {
  if (fault == Fault::sessions_ended) {
    server_->ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'");
  } else if (fault == Fault::full) {
    server_->ask("ALTER ROLE app CONNECTION LIMIT 0");
  } else if (fault == Fault::read_only) {
    server_->become_standby();
  } else {
    Service::provoke(fault);
  }
}

void PostgresService::mend(Fault fault) {
  if (fault == Fault::sessions_ended) {
  } else if (fault == Fault::full) {
    server_->ask("ALTER ROLE app CONNECTION LIMIT -1");
  } else if (fault == Fault::read_only) {
    server_->ask("SELECT pg_promote()");
  } else {
    Service::mend(fault);
  }
}

// A database of its own of a cluster of two; each client asks the one that the client before it did
// not ask.
class GaleraService final : public Service {
 public:
  GaleraService() : database_("contract" + std::to_string(++services_)) {
    cluster_->server(0).ask("CREATE DATABASE " + database_);
    // Until the other one has it, too.
    cluster_->server(1).ask("SET SESSION wsrep_sync_wait = 15; SELECT 1");
  }
  ~GaleraService() override { cluster_->server(0).ask("DROP DATABASE " + database_); }
  const Traits& traits() const override { return find_backend("mysql-version")->traits; }
  std::unique_ptr<Backend> connect(Millis patience) override {
    const MysqlServer& server = cluster_->server(clients_++ % 2);
    return open_url(server.url("version", "app:sesame", database_), patience);
  }
  bool has_one_clock() const override { return false; }

 private:
  static inline int services_ = 0;
  const std::string database_;
  const GaleraCluster* const cluster_ = [] {
    static const GaleraCluster cluster;
    return &cluster;
  }();
  int clients_ = 0;
};

template <class Server>
std::unique_ptr<Service> mysql(const std::string& method) {
  return std::make_unique<MysqlService>(method, shared_server<Server>());
}

std::unique_ptr<Service> mysql_table() { return mysql<MysqlServer>("table"); }
std::unique_ptr<Service> mysql_row() { return mysql<MysqlServer>("row"); }
std::unique_ptr<Service> mysql_version() { return mysql<MysqlServer>("version"); }
std::unique_ptr<Service> strange_mysql_table() { return mysql<StrangeMysqlServer>("table"); }
std::unique_ptr<Service> strange_mysql_row() { return mysql<StrangeMysqlServer>("row"); }
std::unique_ptr<Service> strange_mysql_version() { return mysql<StrangeMysqlServer>("version"); }
std::unique_ptr<Service> galera_version() { return std::make_unique<GaleraService>(); }
template <class Server>
std::unique_ptr<Service> postgres(const std::string& method, const std::string& encoding) {
  return std::make_unique<PostgresService>(method, shared_server<Server>(), encoding);
}
std::unique_ptr<Service> postgres_table() { return postgres<PostgresServer>("table", "utf8"); }
std::unique_ptr<Service> postgres_row() { return postgres<PostgresServer>("row", "utf8"); }
std::unique_ptr<Service> strange_postgres_table() {
  return postgres<StrangePostgresServer>("table", "latin1");
}
std::unique_ptr<Service> strange_postgres_row() {
  return postgres<StrangePostgresServer>("row", "sql_ascii");
}
std::unique_ptr<Service> zookeeper() { return std::make_unique<ZooKeeperService>(); }
std::unique_ptr<Service> redlock() { return std::make_unique<RedlockService>(); }
std::unique_ptr<Service> redis() { return std::make_unique<RedisService>(); }
std::unique_ptr<Service> file_in_memory() {
  return std::make_unique<UrlService>("file://{}", "/dev/shm");
}
std::unique_ptr<Service> file_on_disk() {
  return std::make_unique<UrlService>("file://{}", "/tmp");
}
std::unique_ptr<Service> memory() {
  return std::make_unique<UrlService>("memory://{}/store", "/dev/shm");
}
std::unique_ptr<Service> sharded_files() { return std::make_unique<ShardedService>("file://{}"); }
std::unique_ptr<Service> sharded_memory() {
  return std::make_unique<ShardedService>("memory://{}/store");
}
std::unique_ptr<Service> faultless() {
  return std::make_unique<UrlService>("faulty://{}/control?wrap=memory://{}/store", "/dev/shm");
}

}  // namespace

std::vector<ServiceKind> service_kinds() {
  std::vector<ServiceKind> kinds{{"file_in_memory", file_in_memory},
                                 {"file_on_disk", file_on_disk},
                                 {"memory", memory},
                                 {"faultless", faultless},
                                 {"sharded_files", sharded_files},
                                 {"sharded_memory", sharded_memory}};
  // A row without `open` was left out of this build; a server that is missing is told by
  // redis_test.cpp and zookeeper_test.cpp, which are skipped then.
  for (const ServiceKind& kind : server_kinds()) kinds.push_back(kind);
  if (find_backend("mysql")->open != nullptr && MysqlServer::available()) {
    kinds.push_back({"strange_mysql_table", strange_mysql_table});
    kinds.push_back({"strange_mysql_row", strange_mysql_row});
    kinds.push_back({"strange_mysql_version", strange_mysql_version});
    if (GaleraCluster::available()) kinds.push_back({"galera_version", galera_version});
  }
  if (find_backend("postgres")->open != nullptr && PostgresServer::available()) {
    kinds.push_back({"strange_postgres_table", strange_postgres_table});
    kinds.push_back({"strange_postgres_row", strange_postgres_row});
  }
  return kinds;
}

std::unique_ptr<Backend> Service::connect_to(int) { return nullptr; }

void Service::provoke(Fault fault) {
  for (TestServer* server : servers()) fault == Fault::killed ? server->kill() : server->pause();
}

void Service::mend(Fault fault) {
  for (TestServer* server : servers()) {
    fault == Fault::killed ? server->start_again() : server->resume();
  }
}

std::vector<ServiceKind> one_server_kinds() {
  std::vector<ServiceKind> kinds = server_kinds();
  std::erase_if(kinds, [](const ServiceKind& kind) { return kind.name == "redlock"; });
  return kinds;
}

std::vector<ServiceKind> sql_kinds(std::string_view end) {
  std::vector<ServiceKind> kinds = server_kinds();
  std::erase_if(kinds, [&](const ServiceKind& kind) {
    const bool is_sql = kind.name.starts_with("mysql") || kind.name.starts_with("postgres");
    return !is_sql || !kind.name.ends_with(end);
  });
  return kinds;
}

std::vector<ServiceKind> server_kinds() {
  std::vector<ServiceKind> kinds;
  if (find_backend("redis")->open != nullptr && RedisServer::available()) {
    kinds.push_back({"redis", redis});
    kinds.push_back({"redlock", redlock});
  }
  if (find_backend("zookeeper")->open != nullptr && ZooKeeperServer::available()) {
    kinds.push_back({"zookeeper", zookeeper});
  }
  if (find_backend("mysql")->open != nullptr && MysqlServer::available()) {
    kinds.push_back({"mysql_table", mysql_table});
    kinds.push_back({"mysql_row", mysql_row});
    kinds.push_back({"mysql_version", mysql_version});
  }
  if (find_backend("postgres")->open != nullptr && PostgresServer::available()) {
    kinds.push_back({"postgres_table", postgres_table});
    kinds.push_back({"postgres_row", postgres_row});
  }
  return kinds;
}

std::unique_ptr<Backend> open_url(const std::string& url, Millis connect_timeout,
                                  std::optional<std::string> prefix) {
  auto parsed = parse_url(url);
  if (!parsed) {
    ADD_FAILURE() << url << ": " << parsed.error().message;
    return nullptr;
  }
  const BackendEntry& entry = entry_of(url);
  if (find_form(entry.forms, parsed->scheme) == nullptr) parsed->scheme = std::string(entry.name);
  auto backend = entry.open(
      {.url = parsed.value(), .prefix = std::move(prefix), .connect_timeout = connect_timeout},
      after(Clock::now(), Millis{5'000}), Cancel());
  if (!backend) {
    ADD_FAILURE() << url << ": " << backend.error().message;
    return nullptr;
  }
  return std::move(*backend);
}

}  // namespace dlock::test
