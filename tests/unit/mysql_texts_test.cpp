// The texts that decide who holds a lock, whole, as the server gets them: mysql_texts.sql.  A
// change of it is to be read as a change of the code.  To write it anew: TEST_WRITE_TEXTS=1
// dlock-unit-tests
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "backends/mysql/sql.hpp"
#include "backends/mysql/statements.hpp"
#include "core/lock_record.hpp"

namespace dlock::mysql {
namespace {

constexpr const char* kFile = TEST_UNIT_TESTS "/mysql_texts.sql";

Request request_in(Mode mode) {
  Request out;
  out.key = "job";
  out.mode = mode;
  out.slots = mode == Mode::slots ? 3 : 1;
  out.owner.id = "me";
  return out;
}

void replace(std::string& text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// A statement a line; names instead of their numbers in hexadecimal.
void put(std::string& out, const std::string& title, std::string text, const Request& request) {
  replace(text, literal(format_lock_record(request)), ":record");
  replace(text, literal("job"), ":key");
  replace(text, literal("me"), ":owner");
  for (const auto& [mark, name] :
       {std::pair(holder_mark("me"), ":holder_mark"), std::pair(waiter_mark("me"), ":waiter_mark"),
        std::pair(session_mark("me"), ":session_mark"), std::pair(row_mark("me"), ":row_mark")}) {
    replace(text, literal(mark), name);
  }
  replace(text, "; ", ";\n");
  out += "-- " + title + "\n" + text + "\n\n";
}

std::string texts() {
  std::string out;
  for (const auto& [method, name] :
       {std::pair(Method::table, "mysql-table"), std::pair(Method::version, "mysql-version")}) {
    const Statements say(method, "dlock_", "job");
    for (const Mode mode : {Mode::exclusive, Mode::shared, Mode::slots}) {
      const Request request = request_in(mode);
      const std::string which = std::string(", ") + name + ", " + std::string(mode_name(mode));
      put(out, "attempt" + which, say.attempt(request, 7), request);
    }
    const Request request = request_in(Mode::exclusive);
    const std::string which = std::string(", ") + name;
    put(out, "renew" + which, say.renew(9, "me", Millis{30'000}), request);
    put(out, "change" + which, say.change(9, "me", Millis{30'000}, ":new_record"), request);
    put(out, "release" + which, say.release(9, "me"), request);
    put(out, "break_grant" + which, say.break_grant("me", "why"), request);
  }
  const Statements say(Method::table, "dlock_", "job");
  const Request request = request_in(Mode::exclusive);
  put(out, "join", say.join(request), request);
  put(out, "forget_unused", say.forget_unused(), request);
  const Statements there(Method::table, "dlock_", "job", Marks::of_cluster(":is_over"));
  put(out, "attempt, on a cluster", there.attempt(request, 7), request);
  put(out, "join, on a cluster", there.join(request), request);
  put(out, "renew, on a cluster", there.renew(9, "me", Millis{30'000}), request);
  return out;
}

TEST(MysqlTexts, AreThoseThatWereRead) {
  const std::string now = texts();
  if (std::getenv("TEST_WRITE_TEXTS") != nullptr) std::ofstream(kFile) << now;
  std::stringstream read;
  read << std::ifstream(kFile).rdbuf();
  EXPECT_EQ(read.str(), now);
}

}  // namespace
}  // namespace dlock::mysql
