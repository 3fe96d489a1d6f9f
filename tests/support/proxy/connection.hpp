// One client's connection through the proxy.
#pragma once

#include <poll.h>

#include <string>
#include <string_view>
#include <vector>

#include "support/proxy/faults.hpp"
#include "support/proxy/flow.hpp"
#include "util/fd.hpp"

namespace dlock::test {

class Connection {
 public:
  /// No `server`: whatever the client says is swallowed.
  Connection(Fd client, Fd server);

  /// Adds two entries; work() takes their revents.
  void add_to(std::vector<pollfd>& fds) const;
  /// When work() has something to do without an event.
  Deadline due(const Faults& faults) const;
  /// Reads what there is and writes what is due.
  void work(short client_events, short server_events, Faults& faults, Counters& counters);

  /// From now on what the server says is swallowed, or what either says.
  void drop_replies() { replies_.swallow(); }
  void swallow();
  /// Ends it, with all that is not yet passed on.
  void cut(Cut how);
  bool ended() const { return !client_; }

 private:
  void read_requests(Faults& faults, Counters& counters);
  void read_replies(const Faults& faults, Counters& counters);
  bool is_to_lose(std::string_view bytes, Faults& faults);
  void write(const Faults& faults);

  Fd client_;
  Fd server_;
  Flow requests_;
  Flow replies_;
  std::string recent_;  // the end of the requests so far: a text may be split between two reads
  bool loses_reply_ = false;
};

}  // namespace dlock::test
