#include "cli/generate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "backends/registry.hpp"
#include "cli/cmd_backends.hpp"
#include "cli/cmd_help.hpp"
#include "cli/flags.hpp"
#include "cli/lock_columns.hpp"
#include "cli/man_prose.hpp"
#include "cli/print_json.hpp"
#include "cli/print_text.hpp"
#include "engine/exit_status.hpp"

namespace dlock::cli {
namespace {

std::string without_backslashes(std::string text) {
  std::erase(text, '\\');
  return text;
}

TEST(Generate, EveryFlagIsInHelpManPageAndCompletions) {
  const auto backends = builtin_backends();
  const std::string man = without_backslashes(generate_man(backends));
  const std::string bash = generate_bash(backends);
  const std::string zsh = generate_zsh(backends);
  const std::string fish = generate_fish(backends);
  for (const Flag& flag : flags()) {
    const std::string name = "--" + std::string(flag.name);
    EXPECT_NE(man.find("fB" + name), std::string::npos) << name;
    EXPECT_NE(bash.find(name), std::string::npos) << name;
    EXPECT_NE(zsh.find(name), std::string::npos) << name;
    EXPECT_NE(fish.find(" -l " + std::string(flag.name)), std::string::npos) << name;
    for (const Command& command : commands()) {
      if ((flag.commands & command.id) == 0) continue;
      EXPECT_TRUE(flag.name == "help" || help_of(command).find(name) != std::string::npos) << name;
    }
  }
}

TEST(Generate, TheManPageSaysOfEachFlagWhatItDoes) {
  std::string man = without_backslashes(generate_man(builtin_backends()));
  for (std::size_t at = 0; (at = man.find("fB--", at)) != std::string::npos;) man.erase(at, 2);
  for (std::size_t at = 0; (at = man.find("fR", at)) != std::string::npos;) man.erase(at, 2);
  for (const Flag& flag : flags()) {
    const std::string first = sentence(flag.brief);
    EXPECT_NE(man.find('\n' + first), std::string::npos) << flag.name << ": " << first;
  }
}

TEST(Generate, TheManPageSaysMoreOfEachOptionAndEachCommand) {
  const std::string man = generate_man(builtin_backends());
  for (const man::OptionText& row : man::kOptionTexts) {
    EXPECT_EQ(flag(row.name).name, row.name);
    if (row.section.empty()) continue;
    EXPECT_NE(man.find("\n.SH " + std::string(row.section) + '\n'), std::string::npos) << row.name;
  }
  const auto has_text = [](const Command& command) {
    return std::ranges::any_of(man::kCommandTexts,
                               [&](const auto& row) { return row.name == command.name; });
  };
  for (const Command& command : commands()) EXPECT_EQ(has_text(command), !command.hidden);
}

TEST(Generate, TheManPageHasEveryBackendVariableAndExitStatus) {
  const std::string man = without_backslashes(generate_man(builtin_backends()));
  for (const BackendEntry& entry : builtin_backends()) {
    EXPECT_NE(man.find("fB" + std::string(entry.name)), std::string::npos) << entry.name;
    EXPECT_NE(man.find(entry.forms.front().example), std::string::npos) << entry.name;
  }
  for (const Flag& flag : flags()) {
    EXPECT_TRUE(!flag.in_environment() || man.find(variable_of(flag)) != std::string::npos)
        << flag.name;
  }
  for (const exit_status::Row& row : exit_status::kTable) {
    EXPECT_NE(man.find(row.status), std::string::npos) << row.status;
  }
}

TEST(Generate, HiddenCommandsAreShownNowhere) {
  const auto backends = builtin_backends();
  EXPECT_EQ(generate_man(backends).find("dlock generate\\fR"), std::string::npos);
  EXPECT_EQ(generate_zsh(backends).find("'generate:"), std::string::npos);
  EXPECT_EQ(overview().find("\n  generate"), std::string::npos);
}

TEST(Generate, HelpFitsIntoEightyColumnsAndSeventyFiveLines) {
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

TEST(Generate, ATableAsTextAndAnObjectAsJson) {
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

TEST(Generate, EveryColumnIsInTheManPage) {
  const std::string man = without_backslashes(generate_man(builtin_backends()));
  for (const LockColumn& it : lock_columns()) {
    EXPECT_NE(
        man.find("fB" + std::string(it.column.name.empty() ? it.column.field : it.column.name) +
                 "fR ("),
        std::string::npos)
        << it.column.name;
  }
}

}  // namespace
}  // namespace dlock::cli
