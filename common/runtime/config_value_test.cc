// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/config_value.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace covey {
namespace {

TEST(ConfigValueTest, ParsesAndPrintsBytes) {
  EXPECT_EQ(ParseBytes("0").value(), 0u);
  EXPECT_EQ(ParseBytes("64B").value(), 64u);
  EXPECT_EQ(ParseBytes("2KB").value(), 2000u);
  EXPECT_EQ(ParseBytes("1TiB").value(), uint64_t{1} << 40);
  for (const char* bad : {"", "B", "KiB", "1.5MiB", "-1", "1 MiB", "1QB", "16777216TiB"}) {
    EXPECT_FALSE(ParseBytes(bad).ok()) << bad;
  }
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{1000}, uint64_t{3} << 10,
                               uint64_t{5} << 30, uint64_t{1} << 63}) {
    EXPECT_EQ(ParseBytes(FormatBytes(bytes)).value(), bytes);
  }
  EXPECT_EQ(FormatBytes(256 << 20), "256MiB");
}

TEST(ConfigValueTest, WritesWhatItReads) {
  for (const double value : {0.5, 0.1, 1e-300, 1.0 / 3, 123456789.123}) {
    double read = 0;
    ASSERT_TRUE(ReadValue(WriteValue(value), &read).ok());
    EXPECT_EQ(read, value);
  }
  EXPECT_EQ(WriteValue(0.1), "0.1");
  for (const absl::Duration value : {absl::ZeroDuration(), absl::Milliseconds(2500),
                                     absl::Hours(30), absl::InfiniteDuration()}) {
    absl::Duration read;
    ASSERT_TRUE(ReadValue(WriteValue(value), &read).ok());
    EXPECT_EQ(read, value);
  }
}

TEST(ConfigValueTest, FindsTheNearestName) {
  EXPECT_EQ(NearestName("sevrers", {"workers", "servers", "groups"}), "servers");
  EXPECT_EQ(NearestName("", {"workers", "job"}), "job");
  EXPECT_EQ(NearestName("x", {"a", "b"}), "a");
}

}  // namespace
}  // namespace covey
