#include "core/marks.hpp"

#include <gtest/gtest.h>

#include "support/fake_records.hpp"

namespace dlock {
namespace {

const MarkName kJob{"job", "2026-11-22"};

class MarksTest : public testing::Test {
 protected:
  void SetUp() override { records.now = 1'795'000'000'000; }
  void done(const MarkName& name, const std::string& by, Millis remember) {
    Owner owner;
    owner.id = by;
    records.put(record_of(name), format_mark(owner, 7, remember));
  }
  std::string doer(const MarkName& name) {
    auto mark = find_mark(records, name, kNever);
    return mark && *mark ? mark.value()->owner.id : "";
  }

  test::FakeRecords records;
};

TEST_F(MarksTest, AMarkIsFoundUntilItsTimeIsOver) {
  EXPECT_EQ(doer(kJob), "");
  done(kJob, "a", Millis{100});
  records.now += 99;
  auto mark = find_mark(records, kJob, kNever);
  ASSERT_TRUE(mark && *mark);
  EXPECT_EQ(mark.value()->owner.id, "a");
  EXPECT_EQ(mark.value()->fence, 7u);
  EXPECT_EQ(mark.value()->age, Millis{99});
  EXPECT_EQ(mark.value()->left, Millis{1});
  records.now += 1;
  EXPECT_EQ(doer(kJob), "");
}

TEST_F(MarksTest, AClockThatWasSetBackKeepsAMarkForLonger) {
  done(kJob, "a", Millis{100});
  records.now -= 1'000;
  auto mark = find_mark(records, kJob, kNever);
  ASSERT_TRUE(mark && *mark);
  EXPECT_EQ(mark.value()->age, Millis{0});
  EXPECT_EQ(mark.value()->left, Millis{1'100});
}

TEST_F(MarksTest, ATimeThatMakesNoSenseIsNoOverflow) {
  done(kJob, "a", kLongestRemembered);
  for (const std::int64_t written : {std::int64_t{0}, INT64_MAX, INT64_MIN}) {
    records.stored[record_of(kJob)].written = written;
    EXPECT_TRUE(find_mark(records, kJob, kNever)) << written;
  }
}

TEST_F(MarksTest, WhatIsNoMarkIsRefusedAndNotListed) {
  records.put(record_of(kJob), "something else");
  EXPECT_EQ(find_mark(records, kJob, kNever).error().code, Errc::conflict);
  EXPECT_TRUE(list_marks(records, "", kNever).value().empty());
}

TEST_F(MarksTest, MarksAreListedByName) {
  done({"b", ""}, "1", Millis{100});
  done({"a", "2"}, "2", Millis{100});
  done({"a", "1"}, "3", Millis{100});
  done({"a", "0"}, "4", Millis{10});
  records.now += 10;
  std::string by;
  const auto marks = list_marks(records, "", kNever);
  for (const Mark& mark : marks.value()) by += mark.owner.id;
  EXPECT_EQ(by, "321");
  EXPECT_EQ(list_marks(records, "b", kNever).value().size(), 1u);
}

TEST_F(MarksTest, WhatIsOverIsSwept) {
  done({"old", ""}, "1", Millis{10});
  done({"new", ""}, "2", Millis{100});
  records.put(record_of({"other", ""}), "something else");
  records.now += 10;
  EXPECT_TRUE(prepare_marks(records, "job", kNever));
  EXPECT_EQ(records.stored.size(), 2u);
}

TEST_F(MarksTest, AMarkIsForgottenOnce) {
  EXPECT_FALSE(forget_mark(records, kJob, kNever).value());
  done(kJob, "a", Millis{100});
  EXPECT_TRUE(forget_mark(records, kJob, kNever).value());
  EXPECT_FALSE(forget_mark(records, kJob, kNever).value());
}

TEST_F(MarksTest, AMarkWhoseTimeIsOverIsNotForgotten) {
  done(kJob, "a", Millis{100});
  records.now += 100;
  EXPECT_FALSE(forget_mark(records, kJob, kNever).value());
}

TEST_F(MarksTest, AMarkThatAJobLeavesMeanwhileStays) {
  done(kJob, "a", Millis{100});
  int calls = 0;
  records.disturb = [&] {
    if (++calls == 3) done(kJob, "b", Millis{100});  // before remove() is carried out
    return false;
  };
  EXPECT_TRUE(forget_mark(records, kJob, kNever).value());
  EXPECT_EQ(doer(kJob), "b");
}

}  // namespace
}  // namespace dlock
