#include "core/records.hpp"

namespace dlock {

Error no_record(const std::string& shown) {
  return {Errc::conflict, shown + " was not written by dlock: delete it, or choose another name"};
}

}  // namespace dlock
