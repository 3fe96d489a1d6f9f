// Which servers, how to get in, and below which node the locks are.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "backends/zookeeper/names.hpp"
#include "core/backend.hpp"

namespace dlock::zookeeper {

struct Place {
  std::vector<HostPort> hosts;
  std::string chroot;  // "" or "/a/b": is not created
  std::string root;    // "" or "/dlock", below the chroot: created when it is missing
  Style style = Style::curator;
  std::string auth;        // user:password of the digest scheme; empty: none
  Millis patience{5'000};  // with one answer
  std::string shown;       // for messages: "zookeeper z1:2181,z2:2181"
  std::string location;    // as a URL without secrets
  std::string name;        // as BackendEntry::place() says

  /// Until when one answer is waited for: the whole may take longer, if the servers go on
  /// answering.
  Deadline answer_by(Deadline deadline) const {
    return std::min(deadline, after(Clock::now(), patience));
  }
  std::string chroot_node() const { return chroot.empty() ? "/" : chroot; }
  std::string base() const { return chroot + root; }
  std::string path_of(std::string_view key) const { return base() + '/' + node_of(key); }
};

/// Errc::invalid says what is wrong with the target.
Result<Place> place_of(const Target& target);

/// That the node is missing which the URL names.
Error no_chroot(const Place& place);

}  // namespace dlock::zookeeper
