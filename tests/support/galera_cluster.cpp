#include "support/galera_cluster.hpp"

#include <unistd.h>

#include "support/spawn.hpp"

namespace dlock::test {
namespace {

constexpr const char* kProvider = "/usr/lib/galera/libgalera_smm.so";

}  // namespace

bool GaleraCluster::available() {
  return MysqlServer::is_mariadb() && MysqlServer::available() && ::access(kProvider, R_OK) == 0 &&
         !find_program("rsync").empty();
}

GaleraCluster::GaleraCluster(Millis ahead) {
  first_.emplace(options(""));
  clock_.jump(ahead);
  MysqlOptions second = options(address_);
  for (const std::string& variable : clock_.environment()) second.environment.push_back(variable);
  second_.emplace(std::move(second));
}

// The server calls rsync to copy its data, which may be another user then.
MysqlOptions GaleraCluster::options(const std::string& address) {
  const auto next = [&] { return "127.0.0.1:" + std::to_string(ports_.emplace_back().port()); };
  const std::string cluster = next(), ist = next(), sst = next();
  const std::string port = cluster.substr(cluster.find(':') + 1);
  if (address_.empty()) address_ = cluster;
  return {.settings = {"wsrep-on=ON", std::string("wsrep-provider=") + kProvider,
                       "wsrep-cluster-address=gcomm://" + address, "wsrep-node-address=" + cluster,
                       "wsrep-sst-method=rsync", "wsrep-sst-receive-address=" + sst,
                       "wsrep-provider-options=base_host=127.0.0.1;base_port=" + port +
                           ";gmcast.listen_addr=tcp://" + cluster + ";ist.recv_addr=" + ist,
                       "binlog-format=ROW", "innodb-autoinc-lock-mode=2"},
          .environment = {"UMASK=0666", "UMASK_DIR=0777"},
          .is_open_to_all = true};
}

}  // namespace dlock::test
