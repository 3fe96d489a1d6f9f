#include "cli/flags.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace dlock::cli {
namespace {

TEST(Flags, NoNameLetterOrVariableStandsTwice) {
  std::set<std::string> names;
  std::set<std::string> variables;
  std::set<char> letters;
  for (const Flag& flag : flags()) {
    EXPECT_TRUE(names.emplace(flag.name).second) << flag.name;
    if (flag.letter != 0) {
      EXPECT_TRUE(letters.insert(flag.letter).second) << flag.name;
    }
    if (flag.in_environment()) {
      EXPECT_TRUE(variables.insert(variable_of(flag)).second) << flag.name;
    }
  }
}

TEST(Flags, BriefsArePhrases) {
  for (const Flag& flag : flags()) {
    EXPECT_FALSE(flag.brief.empty() || flag.brief.ends_with('.')) << flag.name;
    EXPECT_TRUE(flag.brief[0] >= 'a' && flag.brief[0] <= 'z') << flag.name;
    EXPECT_EQ(flag.takes_value() || !flag.alone.empty(), !flag.value.empty()) << flag.name;
    EXPECT_NE(flag.commands, 0U) << flag.name;
  }
  for (const Command& command : commands()) {
    EXPECT_FALSE(command.brief.empty() || command.brief.ends_with('.')) << command.name;
    EXPECT_TRUE(command.hidden || command.text.ends_with('.')) << command.name;
    EXPECT_NE(command.execute, nullptr) << command.name;
  }
}

TEST(Flags, RivalsNameEachOther) {
  for (const Flag& one : flags()) {
    if (!one.rival.empty()) {
      EXPECT_EQ(flag(one.rival).rival, one.name);
    }
  }
}

TEST(Flags, VariablesAndConfigKeysAreNamedAfterThem) {
  EXPECT_EQ(variable_of(flag("connect-timeout")), "DLOCK_CONNECT_TIMEOUT");
  EXPECT_EQ(variable_of(flag("server")), "DLOCK_SERVERS");
  EXPECT_EQ(find_config_key("servers"), &flag("server"));
  EXPECT_EQ(find_config_key("connect_timeout"), &flag("connect-timeout"));
  EXPECT_EQ(find_config_key("connect-timeout"), nullptr);
}

TEST(Flags, ThoseThatNameOneGrantHaveNoVariable) {
  for (const char* name :
       {"key", "shared", "slots", "status-file", "while", "export", "token-file", "help"}) {
    EXPECT_FALSE(flag(name).in_environment()) << name;
    EXPECT_EQ(find_config_key(config_key_of(flag(name))), nullptr) << name;
  }
  EXPECT_EQ(find_config_key("config"), nullptr);
}

TEST(Flags, AProfileHasAUrlInPlaceOfABackend) {
  EXPECT_TRUE(config_kind("url", true));
  EXPECT_FALSE(config_kind("url", false));
  EXPECT_FALSE(config_kind("backend", true));
  EXPECT_TRUE(config_kind("backend", false));
  EXPECT_TRUE(config_kind("ttl", true));
  EXPECT_EQ(config_kind("slots", true).error().message, "; use the option --slots");
}

}  // namespace
}  // namespace dlock::cli
