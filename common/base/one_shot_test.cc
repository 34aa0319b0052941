// SPDX-License-Identifier: Apache-2.0
#include "common/base/one_shot.h"

#include <memory>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace covey {
namespace {

TEST(OneShotTest, GivesItsValueToEveryCopy) {
  const OneShot<std::string> shot;
  const OneShot<std::string> copy = shot;
  EXPECT_FALSE(copy.is_set());
  EXPECT_EQ(copy.Get(), nullptr);
  shot.Set("done");
  EXPECT_TRUE(copy.is_set());
  EXPECT_EQ(*copy.Get(), "done");
  EXPECT_EQ(copy.Wait(), "done");
  EXPECT_EQ(copy.WaitFor(absl::ZeroDuration()), copy.Get());
}

TEST(OneShotTest, WakesThreadsThatWait) {
  const OneShot<int> shot;
  std::thread setter([shot] { shot.Set(7); });
  EXPECT_EQ(shot.Wait(), 7);
  setter.join();
}

TEST(OneShotTest, GivesUpWhenTheTimeIsOver) {
  const OneShot<int> shot;
  EXPECT_EQ(shot.WaitFor(absl::ZeroDuration()), nullptr);
  EXPECT_EQ(shot.WaitFor(-absl::InfiniteDuration()), nullptr);
  EXPECT_EQ(shot.WaitFor(absl::Milliseconds(1)), nullptr);
}

TEST(OneShotTest, MaySetWhenNobodyWaitsAnyMore) {
  auto shot = std::make_unique<OneShot<std::unique_ptr<int>>>();
  const OneShot<std::unique_ptr<int>> kept = *shot;
  shot = nullptr;
  kept.Set(std::make_unique<int>(3));
  EXPECT_EQ(*kept.Wait(), 3);
}

TEST(OneShotDeathTest, IsSetOnlyOnce) {
  const OneShot<int> shot;
  shot.Set(1);
  EXPECT_DEATH(shot.Set(2), "");
}

}  // namespace
}  // namespace covey
