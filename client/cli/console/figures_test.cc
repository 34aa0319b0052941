// SPDX-License-Identifier: Apache-2.0
#include "client/cli/console/figures.h"

#include <gtest/gtest.h>

#include <cmath>

namespace covey::cli {
namespace {

TEST(FiguresTest, Counts) {
  EXPECT_EQ(ShowCount(0), "0");
  EXPECT_EQ(ShowCount(999), "999");
  EXPECT_EQ(ShowCount(1000), "1,000");
  EXPECT_EQ(ShowCount(1234567), "1,234,567");
}

TEST(FiguresTest, Bytes) {
  EXPECT_EQ(ShowBytes(1023), "1023 B");
  EXPECT_EQ(ShowBytes(1536), "1.5 KiB");
  EXPECT_EQ(ShowBytes(uint64_t{64} << 20), "64 MiB");
  EXPECT_EQ(ShowBytes(uint64_t{5000} << 40), "5000 TiB");
}

TEST(FiguresTest, Numbers) {
  EXPECT_EQ(ShowNumber(0), "0");
  EXPECT_EQ(ShowNumber(0.031249), "0.0312");
  EXPECT_EQ(ShowNumber(-4.5), "-4.5");
  EXPECT_EQ(ShowNumber(12345), "12,300");
  EXPECT_EQ(ShowNumber(-1999.6), "-2,000");
  EXPECT_EQ(ShowNumber(1e18), "1e+18");
  EXPECT_EQ(ShowNumber(std::nan("")), "nan");
  EXPECT_EQ(ShowNumber(-HUGE_VAL), "-inf");
}

TEST(FiguresTest, Seconds) {
  EXPECT_EQ(ShowSeconds(0.44), "0.4 s");
  EXPECT_EQ(ShowSeconds(75.2), "75 s");
  EXPECT_EQ(ShowSeconds(150), "2 min 30 s");
  EXPECT_EQ(ShowSeconds(7500), "2 h 5 min");
}

}  // namespace
}  // namespace covey::cli
