// MySQL and MariaDB as sql::Database.
#pragma once

#include <memory>
#include <string>

#include "backends/mysql/place.hpp"
#include "backends/mysql/schema.hpp"
#include "backends/sql/database.hpp"

namespace dlock::mysql {

class MysqlDatabase final : public sql::Database {
 public:
  MysqlDatabase(std::shared_ptr<const Place> place, Method method);

  const std::string& location() const override { return place_->location; }
  const std::string& shown() const override { return place_->shown; }
  Millis connect_timeout() const override { return place_->connect_timeout; }
  bool is_without_session_locks() const override { return has_copies(); }
  bool locks_rows() const override { return method_ == Method::row; }
  std::string foreign_lock() const override {
    return "has locked its row in " + Tables(place_->prefix).rows.name + ", or that table";
  }
  bool has_copies() const override {
    return *place_->cluster == Place::Cluster::galera || *place_->cluster == Place::Cluster::group;
  }
  Result<std::unique_ptr<sql::Session>> open(Deadline deadline, Cancel cancel) const override;
  const sql::Texts& texts() const override;
  std::string literal(std::string_view bytes) const override;
  std::string instant(std::string_view text) const override;
  std::string own_name(std::string_view owner) const override;
  std::string row_name(std::string_view owner) const override;
  std::string gate_name(std::string_view key) const override;
  Result<void> create_tables(sql::Session& session, Deadline deadline,
                             Cancel cancel) const override {
    return mysql::create_tables(session, *place_, deadline, cancel);
  }
  Result<void> check_tables(Part part, sql::Session& session, Deadline deadline,
                            Cancel cancel) const override;

 protected:
  const sql::Values& common() const override {
    return is_without_session_locks() ? without_session_locks_ : with_session_locks_;
  }

 private:
  const std::shared_ptr<const Place> place_;
  const Method method_;
  const sql::Values with_session_locks_;
  const sql::Values without_session_locks_;
};

}  // namespace dlock::mysql
