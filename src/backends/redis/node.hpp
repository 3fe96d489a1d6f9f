// One Redis server: knows the wire and runs the scripts, knows nothing of quorums.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/redis/calls.hpp"
#include "backends/redis/connection.hpp"
#include "backends/redis/names.hpp"
#include "core/backend.hpp"

namespace dlock::redis {

class Node {
 public:
  Node(Address address, std::string prefix, bool is_one_of_several);

  const Address& address() const { return connection_.address(); }
  const std::string& prefix() const { return prefix_; }
  Names names(std::string_view key) const { return names_of(prefix_, key); }

  // In all that follows: Errc::unreachable (it may have been done all the same), denied, cancelled.
  // What one of several servers is asked it may take until `deadline` to answer, and so much longer
  // as it takes to connect, or to send a script that it has forgotten: these are no sign that it is
  // slow.

  /// Nothing to do if it is connected.
  Result<void> connect(Deadline deadline, Cancel cancel) {
    return connection_.connect(deadline, cancel);
  }

  /// The answer has the shape of the call.  `by_text`: nobody may be there to send the script again
  /// if the server does not know it.
  Result<Reply> run(const ScriptCall& call, Deadline deadline, Cancel cancel, bool by_text = false);

  /// What was written over this connection has come to as many replicas as the URL asks for, none
  /// by default.  Otherwise Errc::unreachable: it may come to them later.
  Result<void> replicated(Deadline deadline, Cancel cancel);

  Result<LockInfo> look(std::string_view key, Deadline deadline, Cancel cancel);
  Result<std::vector<LockInfo>> list(std::string_view key_prefix, Deadline deadline, Cancel cancel);

  /// The names there that fit each of the patterns, each once.
  Result<std::vector<std::vector<std::string>>> scan(const std::vector<std::string>& patterns,
                                                     Deadline deadline, Cancel cancel);
  /// Tells one connection from the next; 0 while there is none.
  unsigned connection() const { return connection_.number(); }

  /// Plain commands, all at once.
  Result<std::vector<Reply>> ask(const std::vector<Command>& commands, Deadline deadline,
                                 Cancel cancel) {
    return connection_.ask(commands, deadline, cancel);
  }
  Error unexpected_reply() { return connection_.unexpected_reply(); }
  /// Until when one answer is waited for, at most until `deadline`.
  Deadline patience(Deadline deadline) const;

 private:
  bool needs_text(const Reply& reply);
  Result<std::vector<std::string>> locks(std::string_view key_prefix, Deadline deadline,
                                         Cancel cancel);

  Connection connection_;
  bool lacks_evalsha_ = false;
  const std::string prefix_;
  const bool is_one_of_several_;
};

}  // namespace dlock::redis
