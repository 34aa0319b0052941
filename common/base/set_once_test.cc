// SPDX-License-Identifier: Apache-2.0
#include "common/base/set_once.h"

#include <memory>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace covey {
namespace {

TEST(SetOnceTest, GivesItsValueToEveryCopy) {
  const SetOnce<std::string> once;
  const SetOnce<std::string> copy = once;
  EXPECT_FALSE(copy.is_set());
  EXPECT_EQ(copy.Get(), nullptr);
  once.Set("done");
  EXPECT_TRUE(copy.is_set());
  EXPECT_EQ(*copy.Get(), "done");
  EXPECT_EQ(copy.Wait(), "done");
  EXPECT_EQ(copy.WaitFor(absl::ZeroDuration()), copy.Get());
}

TEST(SetOnceTest, WakesThreadsThatWait) {
  const SetOnce<int> once;
  std::thread setter([once] { once.Set(7); });
  EXPECT_EQ(once.Wait(), 7);
  setter.join();
}

TEST(SetOnceTest, GivesUpWhenTheTimeIsOver) {
  const SetOnce<int> once;
  EXPECT_EQ(once.WaitFor(absl::ZeroDuration()), nullptr);
  EXPECT_EQ(once.WaitFor(-absl::InfiniteDuration()), nullptr);
  EXPECT_EQ(once.WaitFor(absl::Milliseconds(1)), nullptr);
}

TEST(SetOnceTest, CallsThoseWhoAskedBeforeAndAfter) {
  const SetOnce<int> once;
  int seen = 0;
  const auto add = [&] { seen += *once.Get(); };
  once.OnSet(add);
  once.OnSet(add);
  EXPECT_EQ(seen, 0);
  once.Set(7);
  EXPECT_EQ(seen, 14);
  once.OnSet(add);
  EXPECT_EQ(seen, 21);
}

TEST(SetOnceTest, MaySetWhenNobodyWaitsAnyMore) {
  auto once = std::make_unique<SetOnce<std::unique_ptr<int>>>();
  const SetOnce<std::unique_ptr<int>> kept = *once;
  once = nullptr;
  kept.Set(std::make_unique<int>(3));
  EXPECT_EQ(*kept.Wait(), 3);
}

TEST(SetOnceDeathTest, IsSetOnlyOnce) {
  const SetOnce<int> once;
  once.Set(1);
  EXPECT_DEATH(once.Set(2), "");
}

}  // namespace
}  // namespace covey
