// One connection to one server.
#pragma once

#include <memory>
#include <string>

#include "backends/postgres/dial.hpp"
#include "backends/postgres/place.hpp"
#include "backends/sql/session.hpp"

namespace dlock::postgres {

class Connection final : public sql::Session {
 public:
  /// Connects to the place's host; of several to the first that can be written to, the primary.
  /// The one that was it last is tried first.  All have until `deadline`, of which each gets an
  /// equal share of what those before it have left; no host has more than place.connect_timeout.
  static Result<std::unique_ptr<Connection>> open(const std::shared_ptr<const Place>& place,
                                                  Deadline deadline, Cancel cancel);
  ~Connection() override;

  void send(const std::string& text) override;
  sql::Reply receive(Deadline deadline, Cancel cancel) override;
  bool under_way() const override;
  int fd() const override;
  const std::string& server() const override;
  bool broken() const override;
  void close(const std::string& why) override;
  using Session::close;

 private:
  struct State;
  explicit Connection(std::unique_ptr<State> state);
  void take_answers();

  std::unique_ptr<State> state_;
};

}  // namespace dlock::postgres
