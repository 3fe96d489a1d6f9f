#include "engine/waiting.hpp"

#include <gtest/gtest.h>

#include "util/width.hpp"

namespace dlock {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const Deadline kStart = Clock::now();
const std::vector<std::string> kKeys{"nightly/customer-report", "deploy"};

LockInfo held(std::string host, std::int64_t pid, std::string command) {
  LockInfo info{.key = "any"};
  LockInfo::Holder holder;
  holder.owner = {
      .host = std::move(host), .pid = pid, .user = "app", .command = std::move(command)};
  holder.held = minutes{3};
  info.holders.push_back(holder);
  info.place = 2;
  info.waiter_count = 3;
  return info;
}

LockInfo by_the_builder() {
  LockInfo info = held("build-runner-7.ci.example.net", 26427, "/srv/jobs/report-generator.sh");
  info.holders[0].held = minutes{238};
  return info;
}

std::string line(const LockInfo& info, std::size_t key, std::size_t columns) {
  WaitReport report(kKeys, kStart, std::nullopt);
  report.blocked(Blocked::by(key, info), kStart);
  return report.line(kStart + seconds{72}, columns);
}

TEST(WaitReport, TheLineHasWhatFitsAndHostAndPidAlways) {
  const LockInfo far = by_the_builder();
  EXPECT_EQ(
      line(far, 0, 200),
      "waiting 1m12s (2nd of 3): held 3h59m by build-runner-7 pid 26427 (report-generator.sh), "
      "nightly/customer-report");
  EXPECT_EQ(
      line(far, 0, 100),
      "waiting 1m12s (2nd of 3): held 3h59m by build-runner-7 pid 26427 (report-generator.sh), "
      "nightly/cus…");
  EXPECT_EQ(line(far, 0, 73),
            "waiting 1m12s (2nd of 3): held 3h59m by build-runner-7 pid 26427, nightl…");
  EXPECT_EQ(line(far, 0, 66), "waiting 1m12s (2nd of 3): held 3h59m by build-runner-7 pid 26427");
  EXPECT_EQ(line(far, 0, 53), "waiting 1m12s: held 3h59m by build-runner-7 pid 26427");
  EXPECT_EQ(line(far, 0, 50), "waiting 1m12s: held by build-runner-7 pid 26427");
  EXPECT_EQ(line(held("web-3", 4121, "./deploy.sh"), 1, 74),
            "waiting 1m12s (2nd of 3): held 4m12s by web-3 pid 4121 (deploy.sh), deploy");
}

TEST(WaitReport, APlaceIsToldWhereThereIsAnOrder) {
  LockInfo info = held("h", 1, "x");
  for (const auto& [place, words] :
       {std::pair{1U, "(1st of 12)"}, std::pair{3U, "(3rd of 12)"}, std::pair{11U, "(11th of 12)"},
        std::pair{21U, "(21st of 21)"}}) {
    info.place = place;
    info.waiter_count = 12;
    EXPECT_NE(line(info, 1, 80).find(words), std::string::npos) << line(info, 1, 80);
  }
  info.place.reset();
  EXPECT_NE(line(info, 1, 80).find("(one of 12)"), std::string::npos);
  info.waiter_count = 1;
  EXPECT_EQ(line(info, 1, 80), "waiting 1m12s: held 4m12s by h pid 1 (x), deploy");
}

TEST(WaitReport, OffATerminalItSpeaksAtTheBeginningAtEachHolderAndEveryFiveMinutes) {
  using Lines = std::vector<std::string>;
  const std::vector<std::string> keys{"deploy"};
  WaitReport report(keys, kStart, minutes{20});
  EXPECT_EQ(report.acquired(kStart), "");
  LockInfo info = held("web-3.example.net", 4121, "./deploy.sh");
  info.holders[0].owner.label = "https://ci/7";
  report.blocked(Blocked::by(0, info), kStart);
  EXPECT_EQ(
      report.take_lines(kStart),
      (Lines{"waiting for \"deploy\" (2nd of 3), for at most 20m",
             "held by app on web-3.example.net, pid 4121 (deploy.sh), for 3m: https://ci/7"}));
  EXPECT_EQ(report.take_lines(kStart + seconds{1}), Lines{});
  EXPECT_EQ(report.next(), kStart + minutes{5});
  EXPECT_EQ(report.take_lines(kStart + minutes{5}),
            Lines{"still waiting for \"deploy\" after 5m (2nd of 3); same holder"});
  info = held("web-4.example.net", 17, "./deploy.sh");
  info.place = 1;
  info.waiter_count = 2;
  report.blocked(Blocked::by(0, info), kStart + minutes{6});
  EXPECT_EQ(report.take_lines(kStart + minutes{6}),
            Lines{"still waiting for \"deploy\" after 6m (1st of 2); held by app on "
                  "web-4.example.net, pid 17 (deploy.sh), for 3m"});
  EXPECT_EQ(report.next(), kStart + minutes{11});
  EXPECT_EQ(report.acquired(kStart + seconds{723}), "acquired \"deploy\" after 12m03s");
}

TEST(WaitReport, ALabelIsShownOnceForEachHolder) {
  WaitReport report(kKeys, kStart, std::nullopt);
  LockInfo info = held("h", 1, "x");
  info.holders[0].owner.label = "https://ci/7";
  report.blocked(Blocked::by(0, info), kStart);
  EXPECT_EQ(report.take_label(), "https://ci/7");
  EXPECT_EQ(report.take_label(), "");
  info.holders[0].owner.pid = 2;
  report.blocked(Blocked::by(0, info), kStart);
  EXPECT_EQ(report.take_label(), "https://ci/7");
}

TEST(WaitReport, WhatStrangersWroteMovesNoCursor) {
  const std::string shown = line(held("h\x1b[2J", 1, "./x\n\xff"), 1, 80);
  EXPECT_EQ(shown.find_first_of("\x1b\n\xff"), std::string::npos) << shown;
  EXPECT_LE(util::display_width(shown), 80U);
}

}  // namespace
}  // namespace dlock
