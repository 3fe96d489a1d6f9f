// A connection to a MariaDB server: to a real one, to one that is not there, and to one that means
// harm.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "backends/mysql/connection.hpp"
#include "support/mysql_server.hpp"
#include "support/spawn.hpp"
#include "util/poll.hpp"

namespace dlock::mysql {
namespace {

using sql::Reply;
using sql::Row;
using sql::Trouble;
using test::MysqlServer;
using test::ReservedPort;

// Far more than anything here takes.
constexpr Millis kAmple{20'000};

Deadline in(Millis duration) { return after(Clock::now(), duration); }

std::shared_ptr<const Place> place(const std::string& url, Millis patience = kAmple) {
  auto out = make_place({.url = parse_url(url).value(), .connect_timeout = patience});
  EXPECT_TRUE(out) << out.error().message;
  return std::make_shared<Place>(*out);
}

std::unique_ptr<Connection> connected(const std::string& url) {
  auto out = Connection::open(place(url), in(kAmple), {});
  if (!out) throw std::runtime_error(out.error().message);
  return std::move(*out);
}

Error refusal(const std::string& url, Millis patience = kAmple) {
  const auto out = Connection::open(place(url, patience), in(kAmple), {});
  EXPECT_FALSE(out);
  return out ? Error{Errc::busy, "none"} : out.error();
}

Reply ask(Connection& connection, const std::string& sql) {
  return connection.ask(sql, in(kAmple), {});
}

// The one field of the one row of the one answer.
std::string value(Connection& connection, const std::string& sql) {
  const Reply reply = ask(connection, sql);
  if (!reply.ok()) return reply.error->message;
  EXPECT_EQ(reply.answers.size(), 1U);
  return reply.answers.at(0).rows.at(0).at(0).value_or("NULL");
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Waits for what a server or thread does by itself.
bool comes_true(const std::function<bool()>& condition) {
  for (const Deadline deadline = in(kAmple); Clock::now() < deadline;) {
    if (condition()) return true;
    std::this_thread::sleep_for(Millis{2});
  }
  return false;
}

std::size_t count_in(const char* directory) {
  std::size_t out = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    out += entry.path().empty() ? 0 : 1;
  }
  return out;
}

// Whether all threads that belong to connections come to an end.
bool no_threads() {
  return comes_true([] {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::string name;
      std::getline(std::ifstream(task.path() / "comm"), name);
      if (name == "dlock-mysql") return false;
    }
    return true;
  });
}

class MysqlSession : public testing::Test {
 protected:
  void SetUp() override {
    if (!MysqlServer::available()) GTEST_SKIP() << "MariaDB is not installed";
  }
  /// One for all tests that leave it as it was.
  static const MysqlServer& shared() { return *test::shared_server<MysqlServer>(); }
};

// --- the server

TEST_F(MysqlSession, TheServerOfTheTestsIsReadyWithADatabaseAndUsers) {
  const MysqlServer& server = shared();
  EXPECT_EQ(server.ask("SELECT 1, 'a'; SELECT DATABASE()"), "1\ta\ntest");
  EXPECT_THROW(server.ask("nonsense"), std::runtime_error);
  EXPECT_EQ(value(*connected(server.url("table")), "SELECT CURRENT_USER()"), "app@%");
}

// --- asking

TEST_F(MysqlSession, AnswersEveryStatementOfAnAsk) {
  const MysqlServer& server = shared();
  const auto connection = connected(server.url("table"));
  EXPECT_EQ(value(*connection, "SELECT CONNECTION_ID()"), std::to_string(connection->id()));
  const Reply reply =
      ask(*connection,
          "CREATE TEMPORARY TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a VARBINARY(9));"
          "INSERT INTO t (a) VALUES (0x00FF0A), (NULL), ('');"
          "SELECT a FROM t ORDER BY id;"
          "UPDATE t SET a = 'x' WHERE id < 3;"
          "SELECT a FROM t WHERE id > 7");
  ASSERT_TRUE(reply.ok()) << reply.error->message;
  EXPECT_EQ(reply.trouble, Trouble::none);
  ASSERT_EQ(reply.answers.size(), 5U);
  EXPECT_EQ(reply.answers[2].rows,
            (std::vector<Row>{{std::string("\0\xFF\n", 3)}, {std::nullopt}, {""}}));
  EXPECT_TRUE(reply.answers[4].rows.empty());
}

TEST_F(MysqlSession, AnErrorEndsAnAskAndNotTheConnection) {
  const MysqlServer& server = shared();
  const auto connection = connected(server.url("table"));
  const Reply reply = ask(*connection, "SELECT 1; SELECT * FROM missing; SELECT 3");
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.trouble, Trouble::no_table);
  EXPECT_EQ(reply.error->code, Errc::invalid);
  EXPECT_TRUE(reply.error->message.starts_with("mysql 127.0.0.1:")) << reply.error->message;
  EXPECT_EQ(reply.answers.size(), 1U);
  EXPECT_EQ(value(*connection, "SELECT 4"), "4");
}

TEST_F(MysqlSession, ASessionIsSetUpWhateverTheServerSays) {
  const MysqlServer server(
      {.settings = {"init_connect=SET autocommit=0, sql_select_limit=1, sql_mode='ANSI_QUOTES', "
                    "time_zone='+05:00', tx_read_only=1",
                    "max_statement_time=1", "idle_transaction_timeout=1", "wait_timeout=9",
                    "character-set-server=latin1"}});
  const auto connection = connected(server.url("table"));
  EXPECT_EQ(
      value(*connection,
            "SELECT CONCAT_WS(' ', @@sql_mode, @@autocommit, @@time_zone, @@tx_isolation, "
            "@@tx_read_only, @@max_statement_time, @@idle_transaction_timeout, "
            "@@wait_timeout, @@innodb_lock_wait_timeout, @@lock_wait_timeout, "
            "@@character_set_client)"),
      "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION ON +00:00 READ-COMMITTED OFF 0.000000 0 28800 "
      "50 10 utf8mb4");
  EXPECT_EQ(ask(*connection, "SELECT 1 UNION SELECT 2").answers.at(0).rows.size(), 2U);
}

TEST_F(MysqlSession, AStatementMayTakeLongerThanConnecting) {
  const MysqlServer& server = shared();
  auto got = Connection::open(place(server.url("table"), Millis{900}), in(kAmple), {});
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(value(**got, "SELECT SLEEP(1.5)"), "0");
  const Reply reply = ask(**got, "SELECT 1; SELECT SLEEP(1.5)");
  EXPECT_TRUE(reply.ok() && reply.answers.size() == 2);
}

// The thread that fires it waits until the server is at work.
struct CancelWhenAsleep {
  Fd stop{eventfd(0, EFD_CLOEXEC)};
  std::thread thread;

  explicit CancelWhenAsleep(const MysqlServer& server)
      : thread([this, &server] {
          comes_true([&] {
            return server.ask(
                       "SELECT COUNT(*) FROM information_schema.processlist"
                       " WHERE info LIKE 'SELECT SLEEP%'") == "1";
          });
          eventfd_write(stop.get(), 1);
        }) {}
  ~CancelWhenAsleep() { thread.join(); }
};

TEST_F(MysqlSession, CancelEndsAnAskAndBreaksTheConnection) {
  const MysqlServer server;
  const auto connection = connected(server.url("table"));
  EXPECT_EQ(value(*connection, "SELECT 1"), "1");
  {
    const CancelWhenAsleep cancel(server);
    const Deadline start = Clock::now();
    const Reply reply = connection->ask("SELECT SLEEP(600)", kNever, Cancel(cancel.stop.get()));
    EXPECT_LT(Clock::now() - start, kAmple);
    ASSERT_FALSE(reply.ok());
    EXPECT_EQ(reply.error->code, Errc::cancelled);
  }
  EXPECT_TRUE(connection->broken());
  EXPECT_EQ(connection->fd(), -1);
  const Reply later = ask(*connection, "SELECT 1");
  ASSERT_FALSE(later.ok());
  EXPECT_EQ(later.error->code, Errc::unreachable);
  // Its statement can still be asked about.
  EXPECT_EQ(server.ask("SELECT COUNT(*) FROM information_schema.processlist"
                       " WHERE info LIKE 'SELECT SLEEP%'"),
            "1");
  connection->close();
  EXPECT_TRUE(no_threads());
}

TEST_F(MysqlSession, WhatIsCancelledOrLateBeforeItIsSentBreaksNothing) {
  const MysqlServer& server = shared();
  const auto connection = connected(server.url("table"));
  const Fd stop(eventfd(1, EFD_CLOEXEC));
  EXPECT_EQ(connection->ask("SELECT 1", kNever, Cancel(stop.get())).error->code, Errc::cancelled);
  EXPECT_EQ(connection->ask("SELECT 1", Clock::now(), {}).error->code, Errc::unreachable);
  EXPECT_FALSE(connection->broken());
  EXPECT_EQ(value(*connection, "SELECT 1"), "1");
}

TEST_F(MysqlSession, AServerThatIsStoppedIsLateAndLeavesNoThread) {
  MysqlServer server;
  const auto connection = connected(server.url("table"));
  EXPECT_EQ(value(*connection, "SELECT 1"), "1");
  server.pause();
  const Reply reply = connection->ask("SELECT 1", in(Millis{200}), {});
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error->code, Errc::unreachable);
  EXPECT_TRUE(mentions(reply.error->message, "no answer within 200ms")) << reply.error->message;
  EXPECT_TRUE(connection->broken());
  const Error error = refusal(server.url("table"), Millis{300});
  EXPECT_EQ(error.code, Errc::unreachable);
  EXPECT_TRUE(mentions(error.message, "no answer within 300ms")) << error.message;
  connection->close();
  EXPECT_TRUE(no_threads());
  server.resume();
  EXPECT_EQ(value(*connected(server.url("table")), "SELECT 1"), "1");
}

TEST_F(MysqlSession, AKilledConnectionIsReadableAndThenBroken) {
  const MysqlServer& server = shared();
  const auto connection = connected(server.url("table"));
  EXPECT_EQ(value(*connection, "SELECT 1"), "1");
  EXPECT_FALSE(util::wait_readable(connection->fd(), Clock::now()));
  server.ask("KILL " + std::to_string(connection->id()));
  EXPECT_TRUE(util::wait_readable(connection->fd(), in(kAmple)));
  const Reply reply = ask(*connection, "SELECT 1");
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error->code, Errc::unreachable);
  EXPECT_TRUE(connection->broken());
}

TEST_F(MysqlSession, AServerThatDiesBreaksAnAsk) {
  MysqlServer server;
  const auto connection = connected(server.url("table"));
  std::thread killer([&server] {
    comes_true([&] {
      return server.ask(
                 "SELECT COUNT(*) FROM information_schema.processlist"
                 " WHERE info LIKE 'SELECT SLEEP%'") == "1";
    });
    server.kill();
  });
  // The set-up goes first, so that what the server shows is the statement alone.
  EXPECT_EQ(value(*connection, "SELECT 1"), "1");
  const Reply reply = ask(*connection, "SELECT SLEEP(600)");
  killer.join();
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error->code, Errc::unreachable);
  EXPECT_TRUE(mentions(reply.error->message, "the connection was lost")) << reply.error->message;
  EXPECT_TRUE(connection->broken());
}

TEST_F(MysqlSession, SaysGoodbye) {
  const MysqlServer server;
  const auto aborted = [&] {
    return server.ask(
        "SELECT VARIABLE_VALUE FROM information_schema.global_status"
        " WHERE VARIABLE_NAME = 'ABORTED_CLIENTS'");
  };
  const auto gone = [&] {
    return server.ask(
               "SELECT COUNT(*) FROM information_schema.processlist"
               " WHERE user = 'app'") == "0";
  };
  const std::string before = aborted();
  // What waiting opens once for all is there before it is counted; what the thread of a connection
  // that was closed had open is not.
  EXPECT_EQ(value(*connected(server.url("table")), "SELECT 1"), "1");
  EXPECT_TRUE(no_threads());
  const std::size_t open = count_in("/proc/self/fd");
  connected(server.url("table"));
  const auto used = connected(server.url("table"));
  EXPECT_EQ(value(*used, "SELECT 1"), "1");
  used->close();
  used->close();
  EXPECT_TRUE(used->broken());
  EXPECT_TRUE(comes_true(gone));
  EXPECT_EQ(aborted(), before);
  EXPECT_TRUE(comes_true([&] { return count_in("/proc/self/fd") == open; }));
}

TEST_F(MysqlSession, ChangesNothingInTheProcess) {
  const MysqlServer& server = shared();
  const auto connection = connected(server.url("table"));
  struct sigaction action {};
  ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &action), 0);
  EXPECT_EQ(action.sa_handler, SIG_DFL);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGTERM), 0);
  EXPECT_NE(::fcntl(connection->fd(), F_GETFD) & FD_CLOEXEC, 0);
  int keepalive = 0;
  socklen_t length = sizeof keepalive;
  ::getsockopt(connection->fd(), SOL_SOCKET, SO_KEEPALIVE, &keepalive, &length);
  EXPECT_NE(keepalive, 0);
}

// --- connecting

TEST_F(MysqlSession, SaysWhyItCannotConnect) {
  MysqlServer server;
  const Error wrong = refusal(server.url("table", "app:Xyzzy7"));
  EXPECT_EQ(wrong.code, Errc::denied);
  EXPECT_TRUE(mentions(wrong.message, "wrong password for user \"app\"")) << wrong.message;
  EXPECT_FALSE(mentions(wrong.message, "Xyzzy7"));
  const std::string address = "127.0.0.1:" + std::to_string(server.port());
  const Error none = refusal("mysql://root@" + address + "/nowhere");
  EXPECT_EQ(none.code, Errc::invalid);
  EXPECT_TRUE(mentions(none.message, "there is no database \"nowhere\"")) << none.message;
  const Error forbidden = refusal("mysql://app:sesame@" + address + "/mysql");
  EXPECT_EQ(forbidden.code, Errc::denied);
  server.kill();
  const Error refused = refusal(server.url("table"));
  EXPECT_EQ(refused.code, Errc::unreachable);
  EXPECT_EQ(refused.message, "mysql " + address + ": connection refused, or no route to it");
  EXPECT_EQ(refusal("mysql:///test?socket=/nowhere/socket").message,
            "mysql /nowhere/socket: no such socket");
  EXPECT_TRUE(mentions(refusal("mysql://no.such.host.invalid/test").message, "name server") ||
              mentions(refusal("mysql://no.such.host.invalid/test").message, "no such host"));
}

TEST_F(MysqlSession, ConnectsByASocketAndByTheNameLocalhost) {
  const MysqlServer& server = shared();
  EXPECT_EQ(value(*connected("mysql://app:sesame@/test?socket=" + server.socket_path()),
                  "SELECT CURRENT_USER()"),
            "app@%");
  EXPECT_EQ(
      value(*connected("mysql://app:sesame@localhost:" + std::to_string(server.port()) + "/test"),
            "SELECT CURRENT_USER()"),
      "app@%");
}

TEST_F(MysqlSession, TakesThePrimaryAmongSeveral) {
  const MysqlServer standby({.settings = {"read_only=1"}});
  const MysqlServer primary;
  const ReservedPort nobody;
  const auto url = [&](const std::vector<int>& ports) {
    std::string hosts;
    for (const int port : ports) {
      hosts += (hosts.empty() ? "" : ",") + ("127.0.0.1:" + std::to_string(port));
    }
    return "mysql://app:sesame@" + hosts + "/test";
  };
  const auto connection = connected(url({nobody.port(), standby.port(), primary.port()}));
  EXPECT_EQ(value(*connection, "SELECT @@port"), std::to_string(primary.port()));
  const Error error = refusal(url({nobody.port(), standby.port()}));
  EXPECT_EQ(error.code, Errc::unreachable);
  EXPECT_TRUE(mentions(error.message, "connection refused, or no route to it; mysql 127.0.0.1"))
      << error.message;
  EXPECT_TRUE(mentions(error.message, "is read_only")) << error.message;
  // One alone is what the operator wants, whatever it is.
  EXPECT_EQ(value(*connected(url({standby.port()})), "SELECT @@read_only"), "1");
}

TEST_F(MysqlSession, CancelEndsConnecting) {
  MysqlServer server;
  server.pause();
  const Fd stop(eventfd(1, EFD_CLOEXEC));
  const auto out = Connection::open(place(server.url("table")), kNever, Cancel(stop.get()));
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, Errc::cancelled);
}

TEST_F(MysqlSession, SpeaksTls) {
  const test::TempDir dir;
  const auto openssl = test::find_program("openssl");
  if (openssl.empty()) GTEST_SKIP() << "openssl is not installed";
  const std::string cert = dir.path() + "/cert.pem";
  const std::string key = dir.path() + "/key.pem";
  const std::string command = openssl +
                              " req -x509 -newkey rsa:2048 -nodes -days 9 -subj /CN=dlock" +
                              " -addext subjectAltName=IP:127.0.0.1,DNS:localhost -keyout " + key +
                              " -out " + cert + " 2>/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  MysqlServer server({.settings = {"ssl-cert=" + cert, "ssl-key=" + key}});
  const auto cipher = [&](const std::string& query) {
    return value(*connected(server.url("table") + query),
                 "SELECT VARIABLE_VALUE <> '' FROM information_schema.session_status"
                 " WHERE VARIABLE_NAME = 'SSL_CIPHER'");
  };
  EXPECT_EQ(cipher("?tls=off"), "0");
  EXPECT_EQ(cipher("?tls=on"), "1");
  EXPECT_EQ(cipher("?tls=verify&ca=" + cert), "1");
  const Error untrusted = refusal(server.url("table") + "?tls=verify");
  EXPECT_EQ(untrusted.code, Errc::unreachable);
  EXPECT_TRUE(mentions(untrusted.message, "?ca=FILE")) << untrusted.message;
  const Error no_file = refusal(server.url("table") + "?tls=verify&ca=" + dir.path() + "/none");
  EXPECT_EQ(no_file.code, Errc::invalid);
  // To lose a connection later is no matter of TLS.
  const auto connection = connected(server.url("table") + "?tls=on");
  EXPECT_TRUE(connection->ask("DO 0", in(kAmple), {}).ok());
  server.kill();
  const Reply lost = connection->ask("DO 0", in(kAmple), {});
  ASSERT_FALSE(lost.ok());
  EXPECT_TRUE(mentions(lost.error->message, "the connection was lost")) << lost.error->message;
  EXPECT_TRUE(connection->broken());

  const MysqlServer plain({.settings = {"skip-ssl"}});  // MariaDB 11 speaks TLS by default
  const std::string no_tls = refusal(plain.url("table") + "?tls=on").message;
  EXPECT_TRUE(mentions(no_tls, "does not speak TLS") ||
              mentions(no_tls, "server doesn't support it"))  // in the words of MySQL's library
      << no_tls;
  EXPECT_EQ(refusal(plain.url("table") + "?tls=verify&ca=" + cert).code, Errc::unreachable);
}

// --- servers that mean harm

// Takes one caller, greets it as a MySQL, and goes on with what the test says.
class FakeServer {
 public:
  explicit FakeServer(std::function<void(FakeServer&)> then) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port_.port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_.get(), 8) != 0) {
      throw std::runtime_error("cannot listen");
    }
    thread_ = std::thread([this, then = std::move(then)] {
      caller_.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      then(*this);
      ::shutdown(caller_.get(), SHUT_WR);
      while (!receive().empty()) {
      }
    });
  }
  ~FakeServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

  std::string url() const {
    return "mysql://app:Xyzzy7@127.0.0.1:" + std::to_string(port_.port()) + "/test";
  }

  // False once the caller has gone.
  bool send(unsigned number, const std::string& payload) {
    std::string packet;
    for (unsigned shift = 0; shift < 24; shift += 8) {
      packet += static_cast<char>(payload.size() >> shift & 0xFFU);
    }
    packet += static_cast<char>(number);
    packet += payload;
    for (std::size_t at = 0; at < packet.size();) {
      const ssize_t sent =
          ::send(caller_.get(), packet.data() + at, packet.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return false;
      at += static_cast<std::size_t>(sent);
    }
    return true;
  }

  // The payload of one packet; empty at the end, or if there is none in it.
  std::string receive() {
    std::string head = read(4);
    if (head.size() < 4) return "";
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(head[i]); };
    std::string payload =
        read(byte(0) + (std::size_t{byte(1)} << 8U) + (std::size_t{byte(2)} << 16U));
    heard += payload;
    return payload;
  }

  void greet() {
    using namespace std::string_literals;
    send(0, "\x0a"s + "8.0.35\0"s + "\x07\0\0\0"s + "abcdefgh\0"s + "\x09\xa2\x21\x02\0"s +
                "\x0b\0"s + "\x15"s + std::string(10, '\0') + "ijklmnopqrst\0"s +
                "mysql_native_password\0"s);
    receive();
  }
  void welcome() {
    greet();
    send(2, std::string("\0\0\0\2\0\0\0", 7));
  }

  // Until it is asked the first thing that matters.
  void welcome_to_no_cluster() {
    welcome();
    using namespace std::string_literals;
    receive();
    for (unsigned set_up = 1; set_up <= 4; ++set_up) send(set_up, "\0\0\0\x0a\0\0\0"s);
    begin_rows(5);
    send(8, "\xFE\0\0\2\0"s);
  }

  // Of one column.
  void begin_rows(unsigned number) {
    using namespace std::string_literals;
    send(number, "\1");
    send(number + 1, "\3def\0\0\0\1a\0\x0c\x3f\0\xff\xff\xff\0\xfd\0\0\0\0\0"s);
    send(number + 2, "\xFE\0\0\2\0"s);
  }

  std::string heard;  // to be looked at when the thread has ended

 private:
  std::string read(std::size_t size) {
    std::string out(size, '\0');
    if (size == 0) return out;
    const ssize_t got = ::recv(caller_.get(), out.data(), size, MSG_WAITALL);
    out.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return out;
  }

  ReservedPort port_;
  Fd listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  Fd caller_;
  std::thread thread_;
};

TEST(MysqlConnection, GivesNoFileToTheServer) {
  const test::TempDir dir;
  const std::string path = dir.path() + "/secret";
  const Fd file(::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  ASSERT_TRUE(util::write_all(file.get(), "open sesame"));
  std::string heard;
  {
    FakeServer server([&](FakeServer& it) {
      it.welcome_to_no_cluster();
      it.receive();
      it.send(1, '\xFB' + path);
      it.receive();
      it.send(3, std::string("\0\0\0\2\0\0\0", 7));
      it.receive();
      heard = it.heard;
    });
    const auto connection = connected(server.url());
    EXPECT_EQ(connection->id(), 7U);
    const Reply reply = ask(*connection, "SELECT 1");
    ASSERT_FALSE(reply.ok());
    EXPECT_TRUE(mentions(reply.error->message, "forbidden") ||
                mentions(reply.error->message, "rejected"))  // in the words of MySQL's library
        << reply.error->message;
    connection->close();
  }
  EXPECT_TRUE(mentions(heard, "SELECT 1"));
  EXPECT_FALSE(mentions(heard, "open sesame"));
}

TEST(MysqlConnection, DoesNotSayThePasswordInPlainText) {
  std::string heard;
  {
    FakeServer server([&](FakeServer& it) {
      it.greet();
      it.send(2, std::string("\xFEmysql_clear_password\0", 22));
      it.receive();
      heard = it.heard;
    });
    const Error error = refusal(server.url());
    EXPECT_EQ(error.code, Errc::denied) << error.message;
  }
  EXPECT_TRUE(mentions(heard, "app"));
  EXPECT_FALSE(mentions(heard, "Xyzzy7"));
}

// Of somebody who answers in place of the server, and has the other half.
constexpr const char* kPublicKey =
    "-----BEGIN PUBLIC KEY-----\n"
    "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC9q7EouCO0kvQJY5rlrld1XUa1\n"
    "HPPuMs8aROu6GpkKsxxvdPkg96dA12OyMDKJyo20R6oMfkZSChD2/+yl9JPG4c4+\n"
    "a1c1UtDsG54c+ehzX66dXFlE+6ADsIvg9gAKLDuVyEPoVXzA0o2tk3nOp84FnkE/\n"
    "Y8MGuvnZDuoAPB5t+QIDAQAB\n"
    "-----END PUBLIC KEY-----\n";

// Whoever answers could read it: in plain text, or by the key that the library would ask for.
TEST(MysqlConnection, SendsThePasswordToNoServerWithoutTls) {
  using namespace std::string_literals;
  for (const std::string tls : {"off", "preferred", "on"}) {
    for (const std::string method : {"caching_sha2_password", "sha256_password"}) {
      std::string heard;
      std::string then;
      {
        FakeServer server([&](FakeServer& it) {
          it.greet();
          it.send(2, "\xFE" + method + "\0abcdefghijklmnopqrst\0"s);
          const std::string first = it.receive();
          // "Here is my key", or "I do not know this hash, send the password".
          it.send(4, first == "\1" ? "\1"s + kPublicKey : "\1\4"s);
          then = it.receive();
          heard = it.heard;
        });
        const Error error = refusal(server.url() + "?tls=" + tls);
        const bool no_tls = tls == "on" && error.code == Errc::unreachable;
        EXPECT_TRUE(error.code == Errc::denied || no_tls) << error.message;
      }
      EXPECT_TRUE(then.empty()) << tls << ' ' << method;
      EXPECT_FALSE(mentions(heard, "Xyzzy7")) << tls << ' ' << method;
    }
  }
}

TEST(MysqlConnection, SaysThatAServerAnswersLessThanItWasAsked) {
  const FakeServer server([](FakeServer& it) {
    it.welcome();
    it.receive();
    it.send(1, std::string("\0\0\0\2\0\0\0", 7));
    it.receive();
  });
  const Error error = refusal(server.url());
  EXPECT_EQ(error.code, Errc::unreachable);
  EXPECT_TRUE(mentions(error.message, "fewer answers")) << error.message;
}

TEST(MysqlConnection, StopsAServerThatSendsWithoutEnd) {
  bool stopped = false;
  {
    FakeServer server([&](FakeServer& it) {
      using namespace std::string_literals;
      it.welcome_to_no_cluster();
      it.receive();
      it.begin_rows(1);
      const std::string row = "\xFD\0\0\x0f"s + std::string(0xF0000, 'x');
      unsigned number = 4;
      for (int i = 0; i < 200 && !stopped; ++i) stopped = !it.send(number++ & 0xFFU, row);
    });
    const auto connection = connected(server.url());
    const Reply reply = ask(*connection, "SELECT 1");
    ASSERT_FALSE(reply.ok());
    EXPECT_TRUE(mentions(reply.error->message, "too large")) << reply.error->message;
    EXPECT_TRUE(connection->broken());
  }
  EXPECT_TRUE(stopped);
}

TEST(MysqlConnection, KnowsWhatIsNoServerOfTheKind) {
  FakeServer silent([](FakeServer&) {});
  EXPECT_EQ(refusal(silent.url()).code, Errc::unreachable);
  FakeServer other([](FakeServer& it) { it.send(0, "220 mail.example.com ESMTP"); });
  const std::string message = refusal(other.url()).message;
  EXPECT_TRUE(mentions(message, "is it a MySQL or MariaDB?")) << message;
}

TEST(MysqlConnection, WaitsNoLongerForANetworkThatSwallowsAll) {
  // A port whose queue is full leaves its callers without an answer.
  const ReservedPort port;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port.port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* name = reinterpret_cast<const sockaddr*>(&address);
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ASSERT_EQ(::bind(listener.get(), name, sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  std::vector<Fd> queue;
  for (bool full = false; !full && queue.size() < 20;) {
    queue.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ::connect(queue.back().get(), name, sizeof address);
    pollfd item{queue.back().get(), POLLOUT, 0};
    full = ::poll(&item, 1, 200) == 0;
  }
  const Error error =
      refusal("mysql://app@127.0.0.1:" + std::to_string(port.port()) + "/test", Millis{300});
  EXPECT_EQ(error.code, Errc::unreachable);
  EXPECT_TRUE(mentions(error.message, "no answer within 300ms")) << error.message;
  EXPECT_TRUE(no_threads());
}

TEST(MysqlConnection, WaitsNoLongerForALoginThanItMay) {
  {
    const Fd over(eventfd(0, EFD_CLOEXEC));
    FakeServer server([&](FakeServer& it) {
      it.greet();
      util::wait_readable(over.get(), in(kAmple));
    });
    const Error error = refusal(server.url(), Millis{200});
    EXPECT_TRUE(mentions(error.message, "no answer within 200ms")) << error.message;
    // The library's own patience is a second then: the thread that is left behind ends by itself.
    EXPECT_TRUE(no_threads());
    eventfd_write(over.get(), 1);
  }
}

}  // namespace
}  // namespace dlock::mysql
