#include "cli/help.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "cli/flags.hpp"
#include "cli/print_json.hpp"
#include "cli/print_text.hpp"

namespace dlock::cli {
namespace {

TEST(Help, NamesEachOptionButThoseThatOnlyTheManualHas) {
  for (const Flag& flag : flags()) {
    for (const Command& command : commands()) {
      if ((flag.commands & command.id) == 0 || flag.hidden) continue;
      EXPECT_NE(help_of(command).find("--" + std::string(flag.name)), std::string::npos)
          << flag.name;
    }
  }
}

TEST(Help, ShowsNoHiddenCommand) {
  for (const Command& command : commands()) {
    EXPECT_EQ(overview().find("\n  " + std::string(command.name) + ' ') == std::string::npos,
              command.hidden);
  }
}

TEST(Help, FitsIntoEightyColumnsAndSeventyFiveLines) {
  for (const Command& command : commands()) {
    std::istringstream lines(help_of(command));
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      EXPECT_LE(line.size(), 80U) << line;
      EXPECT_FALSE(line.ends_with(' ')) << line;
    }
    EXPECT_LE(count, 75) << command.name;
  }
}

TEST(Print, ATableAsTextAndAnObjectAsJson) {
  const Table table{.heads = {{"NAME"}, {"OK"}},
                    .rows = {{std::string("long name"), true}, {std::string("b"), Cell()}}};
  EXPECT_EQ(print_text(table), "NAME       OK\nlong name  yes\nb          -\n");
  const Object object{{{"name", std::string("b")},
                       {"held", Millis{1'500}},
                       {"none", Cell()},
                       {"list", {}, std::vector<Object>{Object{{{"ok", true}}}}}}};
  EXPECT_EQ(print_json(object),
            "{\n  \"name\": \"b\",\n  \"held\": 1500,\n  \"none\": null,\n"
            "  \"list\": [\n    {\n      \"ok\": true\n    }\n  ]\n}\n");
  EXPECT_EQ(print_json(std::vector<Object>()), "[]\n");
}

}  // namespace
}  // namespace dlock::cli
