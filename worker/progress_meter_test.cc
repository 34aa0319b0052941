#include "worker/progress_meter.h"

#include "gtest/gtest.h"

namespace covey::worker {
namespace {

TEST(ProgressMeterTest, RatesAreThoseOfTheLastFullInterval) {
  ProgressMeter meter;
  absl::Time now = absl::UnixEpoch();
  EXPECT_FALSE(meter.AddStep(now, 64, 2.0));
  for (int i = 0; i < 3; ++i) {
    now += absl::Milliseconds(250);
    EXPECT_FALSE(meter.AddStep(now, 64, 1.5));
  }
  EXPECT_EQ(meter.progress().samples_per_second, 0);
  now += absl::Milliseconds(250);
  ASSERT_TRUE(meter.AddStep(now, 64, 1.0));
  meter.SetStaleness(2.5);
  EXPECT_EQ(meter.progress().step, 5u);
  EXPECT_EQ(meter.progress().samples, 320u);
  EXPECT_EQ(meter.progress().loss, 1.0);
  EXPECT_DOUBLE_EQ(meter.progress().samples_per_second, 320);
  EXPECT_EQ(meter.progress().staleness, 2.5);
  now += absl::Seconds(2);
  ASSERT_TRUE(meter.AddStep(now, 100, 1.0));
  EXPECT_DOUBLE_EQ(meter.progress().samples_per_second, 50);
}

}  // namespace
}  // namespace covey::worker
