// One socket to one Redis server: requests out, replies in.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/redis/address.hpp"
#include "backends/redis/reader.hpp"
#include "backends/redis/reply.hpp"
#include "backends/redis/tls.hpp"
#include "core/cancel.hpp"
#include "util/fd.hpp"

namespace dlock::redis {

/// A command and its arguments, which may hold any bytes.
using Command = std::vector<std::string>;

/// Connects when it is first used, and again after it was dropped.  A request that was cancelled or
/// ran out of time drops it: its late reply must never be taken for the reply to another one.
class Connection {
 public:
  explicit Connection(Address address);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// With sentinels: of the master that they have named last.
  const Address& address() const { return address_; }

  /// Connects, to the master if sentinels know it, by TLS if the address says so, gives user and
  /// password, selects the database. Nothing to do if it is connected, but with sentinels: that it
  /// leads to the master is believed for a second.  Errc::unreachable, denied, cancelled, invalid
  /// (no such database or master, or no such certificates).
  Result<void> connect(Deadline deadline, Cancel cancel);

  /// Sends all commands at once and waits for all replies; errors of the server are replies.  That
  /// of a replica ends the connection: the next one may lead to its master.
  /// Errc::unreachable when the connection could not be made, was lost, or `deadline` came: the
  /// commands may have been executed all the same.
  Result<std::vector<Reply>> ask(std::span<const Command> commands, Deadline deadline,
                                 Cancel cancel);
  Result<Reply> ask(const Command& command, Deadline deadline, Cancel cancel);

  /// The next reply, for a connection that is subscribed.
  Result<Reply> receive(Deadline deadline, Cancel cancel);

  /// The same without waiting: none if no whole reply has come yet.  Reads the socket `reads` times
  /// at most, and counts them down; fd() stays readable if there is more.
  Result<std::optional<Reply>> receive_now(unsigned& reads);

  /// -1 while it is not connected.
  int fd() const { return socket_.get(); }
  /// Tells one connection from the next; 0 while there is none.
  unsigned number() const { return socket_ ? number_ : 0; }
  /// In how many days the certificate of a server with TLS ends.
  std::optional<int> certificate_days() const {
    return tls_ ? tls_->certificate_days() : std::nullopt;
  }
  void drop();
  /// Drops it because a reply is no answer to what was asked.
  Error unexpected_reply() { return lost("sent an unexpected reply; is it a Redis server?"); }

 private:
  Result<void> open(Deadline deadline, Cancel cancel);
  Result<void> open_master(Deadline deadline, Cancel cancel);
  Result<void> open_host(Deadline deadline, Cancel cancel);
  Result<HostPort> ask_sentinels(Deadline deadline, Cancel cancel);
  Result<void> find_master(Deadline deadline, Cancel cancel);
  Result<std::vector<Reply>> exchange(std::span<const Command> commands, Deadline deadline,
                                      Cancel cancel);
  Result<void> send(std::span<const Command> commands, Deadline deadline, Cancel cancel);
  Result<void> write(std::string_view bytes, Deadline deadline, Cancel cancel);
  Result<void> wait_for(short events, Deadline deadline, Cancel cancel);
  Result<std::string_view> read_socket(std::span<char> buffer);
  Result<void> feed(std::string_view bytes);
  Result<bool> read_some();
  Result<std::optional<Reply>> parse();
  Result<void> shake_hands(Deadline deadline, Cancel cancel);
  Result<void> introduce(Deadline deadline, Cancel cancel);
  bool is_stale();
  bool has_new_master(Deadline deadline, Cancel cancel);
  Error cancelled();
  Error lost(const std::string& why);
  Error lost(const Error& why);

  Address address_;
  unsigned switches_ = 0;    // of the sentinels, as they were asked
  Deadline master_known_{};  // when they were asked
  Fd socket_;
  // One of each for each socket.
  std::unique_ptr<Tls> tls_;  // null: plain text
  std::unique_ptr<Reader> reader_;
  std::optional<char> first_byte_;  // that came on it
  std::size_t received_ = 0;        // bytes since the last question
  unsigned number_ = 0;
};

}  // namespace dlock::redis
