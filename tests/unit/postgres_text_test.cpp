#include <gtest/gtest.h>

#include "backends/postgres/text.hpp"

namespace dlock::postgres {
namespace {

using Texts = std::vector<std::string>;

TEST(PostgresText, NothingInALiteralCanCloseIt) {
  EXPECT_EQ(literal("job_1"), "E'job_1'");
  EXPECT_EQ(literal("a'b\\c;d$$"), "E'a\\x27b\\x5cc\\x3bd\\x24\\x24'");
  EXPECT_EQ(literal("\xc3\xa9"), "E'\\xc3\\xa9'");
  EXPECT_EQ(literal(""), "E''");
}

TEST(PostgresText, ATextIsCutIntoItsStatements) {
  EXPECT_EQ(statements_of("SELECT 1; SELECT 2"), (Texts{"SELECT 1", "SELECT 2"}));
  EXPECT_EQ(statements_of(" SELECT 1;;\n"), (Texts{"SELECT 1"}));
  EXPECT_EQ(statements_of("DO $$BEGIN a; b; END$$; SELECT 1"),
            (Texts{"DO $$BEGIN a; b; END$$", "SELECT 1"}));
  EXPECT_EQ(statements_of("SELECT 1; DO $$a; b$$"), (Texts{"SELECT 1", "DO $$a; b$$"}));
  EXPECT_EQ(statements_of("DO $$a; b"), (Texts{"DO $$a; b"}));
  EXPECT_EQ(statements_of(""), Texts{});
}

TEST(PostgresText, AnOutlineHasTheBeginningOfEach) {
  EXPECT_EQ(outline("SELECT 1;DO $$BEGIN\na; b; END$$"), "SELECT 1; DO $$BEGIN a; b; END$$");
  EXPECT_EQ(outline(std::string(50, 'x')), std::string(40, 'x') + "...");
}

}  // namespace
}  // namespace dlock::postgres
