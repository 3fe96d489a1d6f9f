// Redis Sentinel: which server is the master now.
//
// By https://redis.io/docs/latest/develop/reference/sentinel-clients/, but that a majority of the
// sentinels is asked: one that was cut off, or has just come back, may not know of a failover.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/redis/address.hpp"
#include "core/cancel.hpp"
#include "core/result.hpp"
#include "core/url.hpp"
#include "util/clock.hpp"

namespace dlock::redis {

/// What an Address has that sentinels watch over.  All copies of it share this, and so all threads.
struct Sentinels {
  std::string master;         // as they call it
  std::vector<Address> each;  // with what they, and not the master, want to know of us
  /// So many must have what is written, or it does not count.  None: the URL does not say.
  std::optional<unsigned> replicas;

  /// For messages: "redis mymaster".
  std::string shown() const;
  /// All of them, in the order in which to ask: one that has not answered comes last.
  std::vector<const Address*> in_order() const;
  void put_last(const Address& sentinel);

  /// How often one of them has told of a failover: what was known of the master before is to be
  /// asked again.
  std::atomic<unsigned> switches = 0;

 private:
  std::atomic<std::size_t> first_ = 0;  // of `each`
};

/// Within this time a sentinel answers, or another is asked.
inline constexpr Millis kSentinelAnswers{300};

/// The host and the port of the latest failover that one of a majority of them knows of.  Fewer are
/// enough if the others do not answer soon.  Errc::unreachable, denied, invalid (they know no such
/// master), cancelled.
Result<HostPort> find_master(Sentinels& sentinels, Deadline deadline, Cancel cancel);

/// The channel where a sentinel tells of a failover: "NAME OLD-HOST OLD-PORT NEW-HOST NEW-PORT".
inline constexpr const char* kSwitchMaster = "+switch-master";
bool tells_of_switch(const Sentinels& sentinels, std::string_view message);

}  // namespace dlock::redis
