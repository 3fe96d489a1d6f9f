#include "util/dynamic_library.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace dlock::util {
namespace {

struct System : DynamicLibrary {
  using DynamicLibrary::DynamicLibrary;
  decltype(&::getpid) getpid = find("getpid");
};

struct More : System {
  using System::System;
  void (*none)() = find("dlock_has_no_such_function");
};

TEST(DynamicLibrary, HasItsFunctions) {
  const System library("libc.so.6");
  ASSERT_FALSE(library.missing()) << *library.missing();
  EXPECT_EQ(library.getpid(), ::getpid());
}

TEST(DynamicLibrary, SaysWhichFunctionItDoesNotHave) {
  const More library("libc.so.6");
  EXPECT_EQ(library.missing(), "it has no dlock_has_no_such_function");
}

TEST(DynamicLibrary, ThatIsNotThereHasNoFunctionsAndTheLinkersWordForIt) {
  const System library("libdlock-has-none.so.1");
  ASSERT_TRUE(library.missing());
  EXPECT_NE(library.missing()->find("libdlock-has-none.so.1"), std::string::npos);
  EXPECT_EQ(library.getpid, nullptr) << "not the program's own";
}

}  // namespace
}  // namespace dlock::util
