// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/loop_watch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const absl::Time kBegin = absl::UnixEpoch() + absl::Hours(1);

// A loop whose ticks a test gives.
struct FakeLoop {
  LoopWatch::Post post() {
    return [this](std::function<void()> tick) {
      if (is_full) return false;
      ticks.push_back(std::move(tick));
      return true;
    };
  }
  void Run() {
    for (const auto& tick : std::exchange(ticks, {})) tick();
  }
  std::vector<std::function<void()>> ticks;
  bool is_full = false;
};

TEST(LoopWatchTest, NamesTheLoopThatOwesATick) {
  FakeLoop good;
  FakeLoop bad;
  LoopWatch watch(absl::Seconds(10));
  watch.Add("control", good.post());
  watch.Add("data-1", bad.post());
  watch.Ask(kBegin);
  good.Run();
  EXPECT_THAT(watch.Stuck(kBegin + absl::Seconds(9)), IsEmpty());
  watch.Ask(kBegin + absl::Seconds(9));
  EXPECT_THAT(bad.ticks, SizeIs(1)) << "it owes one already";
  EXPECT_THAT(watch.Stuck(kBegin + absl::Seconds(10)), ElementsAre("data-1"));
  bad.Run();
  EXPECT_THAT(watch.Stuck(kBegin + absl::Seconds(10)), IsEmpty());
}

TEST(LoopWatchTest, ALoopThatTakesNoWorkIsStuckToo) {
  FakeLoop full;
  full.is_full = true;
  LoopWatch watch(absl::Seconds(10));
  watch.Add("control", full.post());
  watch.Ask(kBegin);
  full.is_full = false;
  EXPECT_THAT(watch.Stuck(kBegin + absl::Seconds(10)), ElementsAre("control"));
  watch.Ask(kBegin + absl::Seconds(10));
  full.Run();
  EXPECT_THAT(watch.Stuck(kBegin + absl::Hours(1)), IsEmpty());
}

TEST(LoopWatchTest, ATickMayComeLate) {
  FakeLoop loop;
  {
    LoopWatch watch;
    watch.Add("control", loop.post());
    watch.Ask(kBegin);
  }
  loop.Run();
}

}  // namespace
}  // namespace covey
