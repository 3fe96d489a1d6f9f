#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include "backends/file/proc_locks.hpp"

namespace dlock::file {
namespace {

TEST(FileProcLocks, ReadsHoldersAndWaiters) {
  const auto lines = parse_proc_locks(
      "1: POSIX  ADVISORY  WRITE 813 00:1a:911 0 EOF\n"
      "2: FLOCK  ADVISORY  WRITE 4121 00:1a:5678 0 EOF\n"
      "2: -> FLOCK  ADVISORY  READ 4130 00:1a:5678 0 EOF\n"
      "2:    -> FLOCK  ADVISORY  WRITE 4131 00:1a:5678 0 EOF\n"
      "3: OFDLCK ADVISORY  READ -1 fe:10:12 0 EOF\n"
      "4: FLOCK  ADVISORY  READ 7 103:02:18446744073709551615 0 EOF\n"
      "5: LEASE  ACTIVE    READ 7 fe:10:12 0 EOF");
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0].pid, 4121);
  EXPECT_TRUE(lines[0].exclusive);
  EXPECT_FALSE(lines[0].waiting);
  EXPECT_EQ(lines[0].minor, 0x1Au);
  EXPECT_EQ(lines[0].inode, 5678u);
  EXPECT_TRUE(lines[1].waiting);
  EXPECT_FALSE(lines[1].exclusive);
  EXPECT_EQ(lines[2].pid, 4131);
  EXPECT_TRUE(lines[2].waiting);
  EXPECT_EQ(lines[3].major, 0x103u);
  EXPECT_EQ(lines_of(lines, makedev(0, 0x1A), 5678).size(), 3u);
  EXPECT_TRUE(lines_of(lines, makedev(1, 0x1A), 5678).empty());
}

TEST(FileProcLocks, LeavesOutWhatItDoesNotUnderstand) {
  EXPECT_TRUE(parse_proc_locks("").empty());
  EXPECT_TRUE(parse_proc_locks("\n\n1:\n2: FLOCK\n3: FLOCK ADVISORY WRITE x 0:0:1 0 EOF").empty());
  EXPECT_TRUE(parse_proc_locks("3: FLOCK ADVISORY WRITE 5 <none>:0 0 EOF\n").empty());
}

}  // namespace
}  // namespace dlock::file
