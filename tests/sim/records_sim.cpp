// Numbers and marks under random schedules: between any two requests of a client others do whole
// operations, requests and answers are lost, clocks jump.
//
// Checked.  No number is taken twice, and of two calls the one that began after the other had ended
//   gets the larger numbers.  No two windows of a worker overlap.  A mark is there until its time
//   is over, or somebody forgets it.
// Mutants. A service that forgets about versions must be caught.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "core/marks.hpp"
#include "core/numbers.hpp"
#include "support/fake_records.hpp"

namespace dlock {
namespace {

constexpr int kMostDepth = 3;
const MarkName kJob{"job", ""};

// Writes and deletes whatever is there.
class Careless final : public Records {
 public:
  explicit Careless(test::FakeRecords& wrapped) : wrapped_(wrapped) {}
  std::string shown(const RecordName& name) const override { return wrapped_.shown(name); }
  Result<RecordLook> read(const RecordName& name, Deadline deadline) override {
    return wrapped_.read(name, deadline);
  }
  Result<RecordLook> list(std::string_view prefix, Deadline deadline) override {
    return wrapped_.list(prefix, deadline);
  }
  Result<bool> write(const RecordName& name, const std::string&, const std::string& text,
                     Deadline) override {
    if (wrapped_.disturb()) return Error{Errc::unreachable, "no answer"};
    wrapped_.put(name, text);
    return true;
  }
  Result<std::size_t> remove(std::span<const StoredRecord> seen, Deadline) override {
    if (wrapped_.disturb()) return Error{Errc::unreachable, "no answer"};
    for (const StoredRecord& record : seen) wrapped_.stored.erase(record.name);
    return seen.size();
  }
  Result<void> prepare(std::string_view key, Deadline deadline) override {
    return wrapped_.prepare(key, deadline);
  }
  Result<RecordLook> sample(std::string_view key, Deadline deadline) override {
    return wrapped_.sample(key, deadline);
  }

 private:
  test::FakeRecords& wrapped_;
};

class RecordsWorld {
 public:
  RecordsWorld(std::uint64_t seed, bool careless) : random_(seed), careless_(fake_) {
    fake_.now = kIdEpochMs + 1'000'000;
    fake_.disturb = [this] { return disturb(); };
    if (careless) records_ = &careless_;
    forgets_ = one_in(2);
  }

  // "" if all is well.
  std::string run() {
    for (int i = 0; i < 12 && wrong_.empty(); ++i) act();
    return wrong_;
  }

 private:
  unsigned pick(unsigned count) { return static_cast<unsigned>(random_() % count); }
  bool one_in(unsigned count) { return pick(count) == 0; }
  Deadline soon() { return after(Clock::now(), Millis{60'000}); }

  bool disturb() {
    if (depth_ < kMostDepth && one_in(3)) act();
    return one_in(10);
  }

  void act() {
    ++depth_;
    fake_.now += pick(3);
    latest_ = std::max(latest_, fake_.now);
    if (one_in(20)) fake_.now -= 2;
    switch (pick(5)) {
      case 0:
        take_numbers_now();
        break;
      case 1:
        lease_window_now();
        break;
      case 2:
        complete();
        break;
      case 3:
        (void)prepare_marks(*records_, "job", soon());
        break;
      case 4:
        if (forgets_) forget();
        break;
    }
    const bool is_there = fake_.stored.contains(record_of(kJob));
    if (mark_until_ > latest_ && forgetting_ == 0 && !is_there) {
      wrong_ = "a mark is gone before its time is over";
    }
    --depth_;
  }

  void take_numbers_now() {
    const std::uint64_t count = 1 + pick(3);
    const std::uint64_t before = last_;
    auto first = take_numbers(*records_, "x", count, soon());
    if (!first) return;
    if (*first <= before) wrong_ = "a number was taken twice";
    last_ = std::max(last_, *first + count - 1);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (!taken_.insert({*first + i, 0}).second) wrong_ = "a number was taken twice";
    }
  }

  void lease_window_now() {
    auto window = lease_window(*records_, "x", Millis{1 + pick(3)}, soon());
    if (!window) return;
    for (const IdWindow& other : windows_) {
      const bool is_apart = window->end <= other.start || other.end <= window->start;
      if (other.worker == window->worker && !is_apart) wrong_ = "two windows overlap";
    }
    windows_.push_back(*window);
  }

  // In one step with the release of the lock; so nobody completes twice at a time.
  void complete() {
    const Millis remember{1 + pick(6)};
    Owner owner;
    owner.id = "owner-" + std::to_string(++owners_);
    fake_.put(record_of(kJob), format_mark(owner, owners_, remember));
    mark_until_ = fake_.now + remember.count();
  }

  void forget() {
    ++forgetting_;
    (void)forget_mark(*records_, kJob, soon());
    if (!fake_.stored.contains(record_of(kJob))) mark_until_ = 0;
    --forgetting_;
  }

  std::minstd_rand random_;
  test::FakeRecords fake_;
  Careless careless_;
  Records* records_ = &fake_;
  bool forgets_ = false;
  int depth_ = 0;
  std::string wrong_;

  std::uint64_t last_ = 0;
  std::map<std::uint64_t, int> taken_;
  std::vector<IdWindow> windows_;
  int forgetting_ = 0;
  std::uint64_t owners_ = 0;
  std::int64_t mark_until_ = 0;
  std::int64_t latest_ = 0;  // that the clock has shown
};

TEST(RecordsSim, NumbersAreTakenOnceAndMarksStay) {
  const bool is_soak = std::getenv("TEST_SOAK") != nullptr;
  const std::uint64_t seeds = is_soak ? 1'000'000 : 20'000;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    ASSERT_EQ(RecordsWorld(seed, false).run(), "") << "seed " << seed;
  }
}

TEST(RecordsSim, WithoutVersionsEachPromiseIsBroken) {
  std::map<std::string, int> found;
  for (std::uint64_t seed = 0; seed < 2'000; ++seed) ++found[RecordsWorld(seed, true).run()];
  EXPECT_GT(found["a number was taken twice"], 0);
  EXPECT_GT(found["two windows overlap"], 0);
  EXPECT_GT(found["a mark is gone before its time is over"], 0);
}

}  // namespace
}  // namespace dlock
