// What the quoting is for, that a shell reads back each key, is tested by
// tests/cli/acquire-export.sh.
#include "cli/print_shell.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "util/text.hpp"

namespace dlock::cli {
namespace {

TEST(PrintShell, ATextIsOneWordOfAPosixShell) {
  EXPECT_EQ(util::in_shell_quotes(""), "''");
  EXPECT_EQ(util::in_shell_quotes("a b\n$c\\"), "'a b\n$c\\'");
  EXPECT_EQ(util::in_shell_quotes("it's"), R"('it'\''s')");
  EXPECT_EQ(util::in_shell_quotes("'"), R"(''\''')");
}

TEST(PrintShell, ATextIsOneWordOfFishOnOneLine) {
  EXPECT_EQ(in_fish_quotes(""), "''");
  EXPECT_EQ(in_fish_quotes("a b$c"), "'a b$c'");
  EXPECT_EQ(in_fish_quotes(R"(it's \ )"), R"('it\'s \\ ')");
  EXPECT_EQ(in_fish_quotes("a\nb\n"), R"('a'\n'b'\n'')");
}

TEST(PrintShell, WhatIsEmptyIsRemovedFirst) {
  const std::vector<std::pair<std::string, std::string>> variables{
      {"A", "it's"}, {"B", ""}, {"C", "x\ny"}};
  EXPECT_EQ(print_shell(Shell::posix, variables),
            "unset B;\nexport A='it'\\''s';\nexport C='x\ny';\n");
  EXPECT_EQ(print_shell(Shell::fish, variables),
            "set -e B;\nset -gx A 'it\\'s';\nset -gx C 'x'\\n'y';\n");
}

TEST(PrintShell, AFailureIsAStatementThatFails) {
  EXPECT_EQ(print_failure(75), "sh -c 'exit 75'\n");
}

}  // namespace
}  // namespace dlock::cli
