#include "core/config_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/flags.hpp"
#include "core/trusted_file.hpp"

namespace dlock {
namespace {

using namespace std::string_literals;

Result<ConfigFile> parsed(std::string_view text) {
  return parse_config(text, "c.json", cli::config_kind);
}

std::string fault(std::string_view text) {
  const auto file = parsed(text);
  return file ? "none" : file.error().message;
}

// A directory that goes away with everything in it.
class ConfigOnDisk : public testing::Test {
 protected:
  ConfigOnDisk() {
    std::string name = testing::TempDir() + "dlock-config-XXXXXX";
    dir_ = mkdtemp(name.data());
  }
  ~ConfigOnDisk() override { std::filesystem::remove_all(dir_); }

  std::string write(const std::string& text, mode_t mode) const {
    const std::string path = dir_ + "/file";
    std::ofstream(path, std::ios::binary) << text;
    chmod(path.c_str(), mode);
    return path;
  }

  std::string dir_;
};

TEST(ConfigFile, IsAFlatListWithLines) {
  const auto file = parsed(R"({
  "ttl": 45, "wait": 0.5,
  "label": "y",
  "quiet":
    true,
  "backends": {
    "prod": {
      "url": "redis://h",
      "servers": "c"
    },
    "test": {
      "servers": ["a", "b:1"]
    }
  },
  "leftovers": "x"
})");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file.value().find("", "ttl")->values, std::vector{"45"s});
  EXPECT_EQ(file.value().find("", "wait")->values, std::vector{"0.5"s});
  EXPECT_EQ(file.value().find("test", "servers")->values, (std::vector{"a"s, "b:1"s}));
  EXPECT_EQ(file.value().find("", "quiet")->values, std::vector{"true"s});
  EXPECT_EQ(file.value().find("", "quiet")->where, "c.json:4");
  EXPECT_EQ(file.value().find_profile("prod")->where, "c.json:7");
  EXPECT_EQ(file.value().find("prod", "url")->where, "c.json:8");
  EXPECT_EQ(file.value().find("prod", "servers")->values, std::vector{"c"s});
  EXPECT_EQ(file.value().find("", "leftovers")->where, "c.json:15");
}

TEST(ConfigFile, MayHaveAByteOrderMarkAndCarriageReturns) {
  const auto file = parsed("\xEF\xBB\xBF{\r\n\"ttl\": 1\r\n}\r\n");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file.value().find("", "ttl")->where, "c.json:2");
}

TEST(ConfigFile, AFaultIsNamedWithItsLine) {
  EXPECT_EQ(fault("{\n\"tll\": 1}"), "c.json:2: unknown key \"tll\"; did you mean \"ttl\"?");
  EXPECT_EQ(fault("{\"backends\": {\"p\":\n{\"nope\": 1}}}"),
            "c.json:2: unknown key \"nope\" in a profile");
  EXPECT_EQ(fault("{\"key\": \"job\"}"), "c.json:1: unknown key \"key\"; use the option --key");
  EXPECT_EQ(fault("{\"ttl\": 1,\n\n\"ttl\": 2}"), "c.json:3: \"ttl\" stands twice");
  EXPECT_EQ(fault("{\"backends\": {\"p\": {}, \n\"p\": {}}}"),
            "c.json:2: profile \"p\" stands twice");
  EXPECT_EQ(fault("{\n\"conflict_exit_code\": \"3\"}"),
            "c.json:2: \"conflict_exit_code\" must be a number");
  EXPECT_EQ(fault("{\"json\": 1}"), "c.json:1: \"json\" must be true or false");
  EXPECT_EQ(fault("{\"label\": null}"), "c.json:1: \"label\" must be a string");
  EXPECT_EQ(fault("{\"backends\": {\"p\": {\"servers\": [1]}}}"),
            "c.json:1: \"servers\" must be a string or an array of strings");
  EXPECT_EQ(fault("{\"backends\": {\"p\": {\"servers\": []}}}"), "c.json:1: \"servers\" is empty");
  EXPECT_EQ(
      fault("{\"ttl\": 1,\n}"),
      "c.json:2: expected a name in quotes, found \"}\"; is there a comma too many before it?");
  EXPECT_EQ(
      fault("{\"ttl\": 1\n\"wait\": 2}"),
      "c.json:2: expected \"}\" or a comma, found a text in quotes; is a comma missing before it?");
  EXPECT_EQ(fault("{\"ttl\":}"), "c.json:1: expected a value, found \"}\"");
  EXPECT_EQ(fault("{'ttl': 1}"), "c.json:1: names and texts stand in double quotes");
  EXPECT_EQ(fault("{\"backends\": {\"p\": 1}}"), "c.json:1: profile \"p\" must be an object");
  EXPECT_EQ(fault("[]"), "c.json:1: the file must hold a JSON object: { ... }");
  EXPECT_EQ(fault("{\"ttl\": 1\n \"wait\": 2}").substr(0, 10), "c.json:2: ");
  EXPECT_EQ(fault("{\n\n\"ttl\": \"30\n}").substr(0, 10), "c.json:3: ");
  EXPECT_EQ(fault("").substr(0, 10), "c.json:1: ");
  EXPECT_EQ(fault("{\n\"label\": \"\0\"}"s), "c.json:2: holds a NUL byte");
  EXPECT_EQ(fault("{\n\n\"label\": \"\xFF\"}"), "c.json:3: is not valid UTF-8");
}

TEST(ConfigFile, DeepNestingIsRefused) {
  const std::string text = "{\"servers\": " + std::string(100'000, '[');
  EXPECT_NE(fault(text), "none");
}

TEST(ConfigFile, NeverShowsAPassword) {
  for (const std::string& text :
       {"{\"backends\": {\"p\": {\"url\": \"redis://u:secret@h\" \"x\"}}}"s,
        "{\"backend\": \"redis://u:secret@h"s, "{\"backend\": \"redis://u:secret@h\n\"}"s,
        "{\"backend\": \"redis://u:secret\\q@h\"}"s, "{\"ttl\": {\"redis://u:secret@h\": 1}}"s,
        "{\"slots\": \"secret\"}"s, "{\"backend\": secret}"s}) {
    EXPECT_EQ(fault(text).find("secret"), std::string::npos) << fault(text);
  }
}

TEST_F(ConfigOnDisk, OneThatOthersCanWriteIsRefused) {
  for (const mode_t mode : {0620, 0602, 0666}) {
    const auto file = read_config(write("{}", mode), cli::config_kind);
    ASSERT_FALSE(file);
    EXPECT_NE(file.error().message.find("chmod go-w " + dir_), std::string::npos)
        << file.error().message;
  }
  EXPECT_TRUE(read_config(write("{}", 0644), cli::config_kind));
}

TEST_F(ConfigOnDisk, OneWithAPasswordMustBePrivate) {
  const std::string text = R"({"backends": {"p": {"url": "redis://u:secret@h"}}})";
  const auto file = read_config(write(text, 0640), cli::config_kind);
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message.find("chmod go-rwx " + dir_), std::string::npos)
      << file.error().message;
  EXPECT_EQ(file.error().message.find("secret"), std::string::npos);
  EXPECT_TRUE(read_config(write(text, 0600), cli::config_kind));
}

TEST_F(ConfigOnDisk, OfSomebodyElseIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const std::string path = write("{}", 0644);
  ASSERT_EQ(chown(path.c_str(), 12'345, 0), 0);
  const auto file = read_config(path, cli::config_kind);
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message.find("12345"), std::string::npos);
}

TEST_F(ConfigOnDisk, MustBeARegularFileOfReasonableSize) {
  const std::string fifo = dir_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_NE(read_config(fifo, cli::config_kind).error().message.find("regular"), std::string::npos);
  EXPECT_FALSE(read_config(dir_, cli::config_kind));
  EXPECT_FALSE(read_config(write("{}" + std::string(1'048'576, ' '), 0600), cli::config_kind));
  EXPECT_TRUE(read_config(write("{}" + std::string(1'048'574, ' '), 0600), cli::config_kind));
}

TEST_F(ConfigOnDisk, MayBeASymlinkToAGoodOne) {
  const std::string link = dir_ + "/link";
  ASSERT_EQ(symlink(write("{}", 0600).c_str(), link.c_str()), 0);
  EXPECT_TRUE(read_config(link, cli::config_kind));
}

TEST_F(ConfigOnDisk, OneThatIsNotThereIsNoError) {
  const auto file = read_config(dir_ + "/none", cli::config_kind);
  ASSERT_TRUE(file);
  EXPECT_FALSE(file.value());
}

TEST_F(ConfigOnDisk, APasswordIsTheFileWithoutOneNewline) {
  EXPECT_EQ(read_password(write("secret\n", 0600)).value(), "secret");
  EXPECT_EQ(read_password(write(" se cret\n\n", 0400)).value(), " se cret\n");
  EXPECT_FALSE(read_password(write("\n", 0600)));
  EXPECT_FALSE(read_password(write("secret", 0604)));
  EXPECT_FALSE(read_password(write(std::string(4'097, 'x'), 0600)));
  EXPECT_FALSE(read_password(dir_ + "/none"));
}

}  // namespace
}  // namespace dlock
