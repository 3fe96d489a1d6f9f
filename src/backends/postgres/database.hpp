// PostgreSQL as sql::Database.
#pragma once

#include <memory>
#include <string>

#include "backends/postgres/place.hpp"
#include "backends/postgres/schema.hpp"
#include "backends/sql/database.hpp"

namespace dlock::postgres {

class PostgresDatabase final : public sql::Database {
 public:
  PostgresDatabase(std::shared_ptr<const Place> place, Method method);

  const std::string& location() const override { return place_->location; }
  const std::string& shown() const override { return place_->shown; }
  Millis connect_timeout() const override { return place_->connect_timeout; }
  bool locks_rows() const override { return method_ == Method::row; }
  std::string foreign_lock() const override;
  Result<std::unique_ptr<sql::Session>> open(Deadline deadline, Cancel cancel) const override;
  const sql::Texts& texts() const override { return texts_; }
  std::string literal(std::string_view bytes) const override;
  std::string instant(std::string_view text) const override;
  std::string own_name(std::string_view owner) const override;
  std::string row_name(std::string_view owner) const override;
  std::string gate_name(std::string_view key) const override;
  Result<void> create_tables(sql::Session& session, Deadline deadline,
                             Cancel cancel) const override {
    return postgres::create_tables(session, *place_, deadline, cancel);
  }
  Result<void> check_tables(Part part, sql::Session& session, Deadline deadline,
                            Cancel cancel) const override;

 protected:
  const sql::Values& common() const override { return common_; }

 private:
  const std::shared_ptr<const Place> place_;
  const Method method_;
  const sql::Texts texts_;
  const sql::Values common_;
};

}  // namespace dlock::postgres
