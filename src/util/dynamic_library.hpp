// A library that is loaded when it is first needed: to link with it would cost each job that does
// without it more than all that dlock does itself.
#pragma once

#include <optional>
#include <string>

namespace dlock::util {

/// What derives from this has a member for each function that it wants, of the type in the
/// library's header:
///     decltype(&::mysql_init) mysql_init = find("mysql_init");
/// They may be called if nothing is missing().
class DynamicLibrary {
 public:
  /// Loads it; it stays loaded, also when this is gone.
  explicit DynamicLibrary(const char* name);

  /// Why it cannot be used, fit for a message: what the linker says, or a function that it does not
  /// have.  None if it has all.
  const std::optional<std::string>& missing() const { return missing_; }

 protected:
  struct Address {
    void* address;
    template <class Function>
    operator Function*() const {
      return reinterpret_cast<Function*>(address);
    }
  };
  /// Also of the libraries that this one has brought.
  Address find(const char* name);

 private:
  void* library_;
  std::optional<std::string> missing_;
};

}  // namespace dlock::util
