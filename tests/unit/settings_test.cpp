#include "core/settings.hpp"

#include <gtest/gtest.h>

namespace dlock {
namespace {

TEST(Settings, TheHigherLayerStaysInWhicheverOrderTheyCome) {
  const Layer layers[] = {Layer::file, Layer::profile, Layer::environment, Layer::flag};
  for (const Layer low : layers) {
    for (const Layer high : layers) {
      if (low >= high) continue;
      Settings rising;
      rising.put("ttl", {{"low"}, low, "low"});
      rising.put("ttl", {{"high"}, high, "high"});
      EXPECT_EQ(rising.find("ttl")->text(), "high");
      Settings falling;
      falling.put("ttl", {{"high"}, high, "high"});
      falling.put("ttl", {{"low"}, low, "low"});
      EXPECT_EQ(falling.find("ttl")->text(), "high");
    }
  }
}

TEST(Settings, WhatNobodySaidIsNotThere) { EXPECT_EQ(Settings().find("ttl"), nullptr); }

TEST(Settings, OfSeveralValuesTheLastIsTheText) {
  EXPECT_EQ((Setting{{"1", "2"}, Layer::flag, "--ttl"}.text()), "2");
}

}  // namespace
}  // namespace dlock
