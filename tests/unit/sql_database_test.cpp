#include <gtest/gtest.h>

#include <stdexcept>

#include "backends/sql/database.hpp"

namespace dlock::sql {
namespace {

class FakeDatabase final : public Database {
 public:
  const std::string& location() const override { return none_; }
  const std::string& shown() const override { return none_; }
  Millis connect_timeout() const override { return Millis{0}; }
  Result<std::unique_ptr<Session>> open(Deadline, Cancel) const override { return Error{}; }
  const Texts& texts() const override { return texts_; }
  std::string literal(std::string_view bytes) const override { return std::string(bytes); }
  std::string instant(std::string_view text) const override { return std::string(text); }
  std::string own_name(std::string_view owner) const override { return std::string(owner); }
  std::string row_name(std::string_view owner) const override { return std::string(owner); }
  std::string gate_name(std::string_view key) const override { return std::string(key); }
  Result<void> create_tables(Session&, Deadline, Cancel) const override { return {}; }
  Result<void> check_tables(Part, Session&, Deadline, Cancel) const override { return {}; }

 protected:
  const Values& common() const override { return common_; }

 private:
  const std::string none_;
  const Texts texts_;
  const Values common_{{"now", "NOW()"}, {"expiry", "{now} + {ttl}"}};
};

TEST(SqlDatabase, AHoleIsFilledByWhatIsGivenOrByWhatAllTextsShare) {
  const FakeDatabase database;
  EXPECT_EQ(database.fill("SET x = {expiry}, y = {now};", {{"ttl", "7"}}),
            "SET x = NOW() + 7, y = NOW();");
  EXPECT_EQ(database.fill("{now}", {{"now", "then"}}), "then");
}

TEST(SqlDatabase, WhatFillsAHoleIsNoText) {
  const FakeDatabase database;
  EXPECT_EQ(database.fill("{key}", {{"key", "'{now} {'"}}), "'{now} {'");
}

TEST(SqlDatabase, AHoleWithoutAValueIsAnError) {
  const FakeDatabase database;
  EXPECT_THROW((void)database.fill("{nothing}", {}), std::logic_error);
}

}  // namespace
}  // namespace dlock::sql
