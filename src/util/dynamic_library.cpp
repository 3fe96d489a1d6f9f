#include "util/dynamic_library.hpp"

#include <dlfcn.h>

#include "util/text.hpp"

namespace dlock::util {

DynamicLibrary::DynamicLibrary(const char* name) : library_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr) missing_ = printable(dlerror());
}

DynamicLibrary::Address DynamicLibrary::find(const char* name) {
  if (library_ == nullptr) return {nullptr};  // to dlsym() that would be the program itself
  void* const address = dlsym(library_, name);
  if (address == nullptr) missing_ = std::string("it has no ") + name;
  return {address};
}

}  // namespace dlock::util
