#include "backends/registry.hpp"

#include <array>

#include "backends/file/examine.hpp"
#include "backends/file/file_backend.hpp"
#include "backends/file/url_forms.hpp"
#include "backends/mysql/url_forms.hpp"
#include "backends/postgres/url_forms.hpp"
#include "backends/redis/url_forms.hpp"
#include "backends/zookeeper/url_forms.hpp"
#ifdef DLOCK_WITH_MYSQL
#include "backends/mysql/examine.hpp"
#include "backends/mysql/mysql_backend.hpp"
#endif
#ifdef DLOCK_WITH_POSTGRES
#include "backends/postgres/examine.hpp"
#include "backends/postgres/postgres_backend.hpp"
#endif
#ifdef DLOCK_WITH_REDIS
#include "backends/redis/examine.hpp"
#include "backends/redis/redis_backend.hpp"
#endif
#ifdef DLOCK_WITH_ZOOKEEPER
#include "backends/zookeeper/examine.hpp"
#include "backends/zookeeper/zookeeper_backend.hpp"
#endif

namespace dlock {
namespace {

using Reach = Traits::Reach;
using EndsOn = Traits::EndsOn;
using Order = Traits::Order;

constexpr Traits kOnServer{
    .shared = true, .slots = true, .fencing = true, .remembers = true, .resumes = true};
constexpr Traits kOnMajority{.shared = true, .slots = true, .fencing = true, .resumes = true};

// What else it has to hold ends with a process.
constexpr Traits kOfAProcess{.shared = true, .slots = true, .fencing = true, .remembers = true};

constexpr Traits with(Traits traits, EndsOn ends_on, Order order, bool knows_waiters) {
  traits.ends_on = ends_on;
  traits.order = order;
  traits.knows_waiters = knows_waiters;
  return traits;
}

constexpr std::span<const UrlForm> kMysqlForms = mysql::kUrlForms;
constexpr std::span<const UrlForm> kPostgresForms = postgres::kUrlForms;

constexpr std::array kBackends{
    BackendEntry{.name = "file",
                 .forms = file::kUrlForms,
                 .brief = "flock(2) on local files; needs no server",
                 .traits = {.shared = true,
                            .slots = true,
                            .fencing = true,
                            .knows_waiters = true,
                            .remembers = true,
                            .reach = Reach::host,
                            .ends_on = EndsOn::process_exit,
                            .order = Order::kernel},
                 .place = file::place,
                 .open = file::open,
                 .examine = file::examine},
    BackendEntry{.name = "redis",
                 .forms = redis::kUrlForms,
                 .brief = "one Redis server",
                 .traits = with(kOnServer, EndsOn::ttl, Order::fifo, true),
#ifdef DLOCK_WITH_REDIS
                 .place = redis::place,
                 .open = redis::open,
                 .examine = redis::examine
#endif
    },
    BackendEntry{.name = "redlock",
                 .forms = redis::kRedlockUrlForms,
                 .server_scheme = "redis",
                 .brief = "a majority of independent Redis masters",
                 .traits = with(kOnMajority, EndsOn::ttl, Order::none, true),
#ifdef DLOCK_WITH_REDIS
                 .place = redis::place_redlock,
                 .open = redis::open_redlock,
                 .examine = redis::examine_redlock
#endif
    },
    BackendEntry{.name = "zookeeper",
                 .aliases = {"zk"},
                 .forms = zookeeper::kUrlForms,
                 .brief = "ephemeral nodes of a ZooKeeper ensemble",
                 .traits = with(kOfAProcess, EndsOn::session, Order::fifo, true),
#ifdef DLOCK_WITH_ZOOKEEPER
                 .place = zookeeper::place,
                 .open = zookeeper::open,
                 .examine = zookeeper::examine
#endif
    },
    BackendEntry{.name = "mysql",
                 .aliases = {"mysql-table", "mariadb"},
                 .forms = kMysqlForms.subspan(0, 1),
                 .brief = "a unique row in MySQL or MariaDB",
                 .traits = with(kOnServer, EndsOn::ttl, Order::fifo, true),
#ifdef DLOCK_WITH_MYSQL
                 .place = mysql::place,
                 .open = mysql::open<mysql::Method::table>,
                 .schema = mysql::schema_of,
                 .usual_prefix = "dlock_",
                 .examine = mysql::examine<mysql::Method::table>
#endif
    },
    BackendEntry{.name = "mysql-row",
                 .forms = kMysqlForms.subspan(1, 1),
                 .brief = "mysql, and a row that other programs lock",
                 .traits = with(kOfAProcess, EndsOn::ttl, Order::fifo, true),
#ifdef DLOCK_WITH_MYSQL
                 .place = mysql::place,
                 .open = mysql::open<mysql::Method::row>,
                 .schema = mysql::schema_of,
                 .usual_prefix = "dlock_",
                 .examine = mysql::examine<mysql::Method::row>
#endif
    },
    BackendEntry{.name = "mysql-version",
                 .forms = kMysqlForms.subspan(2, 1),
                 .brief = "an optimistic version column in MySQL or MariaDB",
                 .traits = with(kOnServer, EndsOn::ttl, Order::fifo, true),
#ifdef DLOCK_WITH_MYSQL
                 .place = mysql::place,
                 .open = mysql::open<mysql::Method::version>,
                 .schema = mysql::schema_of,
                 .usual_prefix = "dlock_",
                 .examine = mysql::examine<mysql::Method::version>
#endif
    },
    BackendEntry{.name = "postgres",
                 .aliases = {"postgres-table", "postgresql"},
                 .forms = kPostgresForms.subspan(0, 1),
                 .brief = "a unique row in PostgreSQL",
                 .traits = with(kOnServer, EndsOn::ttl, Order::fifo, true),
#ifdef DLOCK_WITH_POSTGRES
                 .place = postgres::place,
                 .open = postgres::open<postgres::Method::table>,
                 .schema = postgres::schema_of,
                 .usual_prefix = "dlock_",
                 .examine = postgres::examine<postgres::Method::table>
#endif
    },
    BackendEntry{.name = "postgres-row",
                 .forms = kPostgresForms.subspan(1, 1),
                 .brief = "postgres, and a row that other programs lock",
                 .traits = with(kOfAProcess, EndsOn::ttl, Order::fifo, true),
#ifdef DLOCK_WITH_POSTGRES
                 .place = postgres::place,
                 .has_one_lock = postgres::has_one_lock,
                 .open = postgres::open<postgres::Method::row>,
                 .schema = postgres::schema_of,
                 .usual_prefix = "dlock_",
                 .examine = postgres::examine<postgres::Method::row>
#endif
    },
};

}  // namespace

std::span<const BackendEntry> builtin_backends() { return kBackends; }

}  // namespace dlock
