// The slots of a key: numbers from 1, each of which one holder has.
#pragma once

#include <vector>

#include "backends/file/lock_file.hpp"

namespace dlock::file {

struct Slot {
  unsigned number = 0;
  LockFile file;
};

/// What an attempt to get one has come to: a slot, or what to wait for.
struct Attempt {
  std::optional<Slot> slot;
  std::vector<Fd> taken;  // of all slots, if there is none: readable once one may be free
};

/// Takes the lowest free number of `count`.  Only with the latch held.
Result<Attempt> take_slot(const Place& place, unsigned count);

/// Frees the slot, in spite of copies of its descriptor.
void free_slot(const LockFile& slot);

/// Room for the descriptors of many slots, for as long as this lives: they may be more than the
/// soft limit of this process, which programs that it starts are not to find changed.
class RoomForSlots {
 public:
  RoomForSlots();
  ~RoomForSlots();
  RoomForSlots(const RoomForSlots&) = delete;
  RoomForSlots& operator=(const RoomForSlots&) = delete;

 private:
  unsigned long before_ = 0;  // 0: unchanged
};

}  // namespace dlock::file
