// SPDX-License-Identifier: Apache-2.0
#include "server/token_bucket.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace covey::server {
namespace {

constexpr uint64_t kRate = 1 << 20;
constexpr uint64_t kDepthBytes = kRate / 2;

class TokenBucketTest : public testing::Test {
 protected:
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  TokenBucket bucket_{kRate};
};

TEST_F(TokenBucketTest, BeginsFullAndFillsAtItsRate) {
  EXPECT_FALSE(bucket_.IsEmpty(now_));
  bucket_.Take(now_, kDepthBytes + kRate / 4);
  EXPECT_TRUE(bucket_.IsEmpty(now_));
  EXPECT_TRUE(bucket_.IsEmpty(now_ + absl::Milliseconds(249)));
  EXPECT_FALSE(bucket_.IsEmpty(now_ + absl::Milliseconds(250)));
}

TEST_F(TokenBucketTest, HoldsNoMoreThanItsDepth) {
  now_ += absl::Hours(1);
  bucket_.Take(now_, kDepthBytes);
  EXPECT_FALSE(bucket_.IsEmpty(now_));
  bucket_.Take(now_, 1 << 10);
  EXPECT_TRUE(bucket_.IsEmpty(now_));
}

TEST_F(TokenBucketTest, LetsARequestOfAnySizePassAndMakesUpForIt) {
  bucket_.Take(now_, kDepthBytes - 1);
  EXPECT_FALSE(bucket_.IsEmpty(now_));
  bucket_.Take(now_, 16 * kRate);
  EXPECT_TRUE(bucket_.IsEmpty(now_ + absl::Milliseconds(15990)));
  EXPECT_FALSE(bucket_.IsEmpty(now_ + absl::Seconds(16)));
}

TEST_F(TokenBucketTest, PromisesOneTurnAfterTheOther) {
  bucket_.Take(now_, kDepthBytes + kRate);
  EXPECT_EQ(bucket_.Promise(now_, kRate / 2), absl::Seconds(1));
  EXPECT_EQ(bucket_.Promise(now_, kRate / 4), absl::Milliseconds(1500));
  EXPECT_EQ(bucket_.Promise(now_, kRate), absl::Milliseconds(1750));
  // Bytes taken out of turn delay later clients: none of them moves to the front.
  bucket_.Take(now_, kRate / 8);
  EXPECT_EQ(bucket_.Promise(now_, kRate), absl::Milliseconds(2750));
}

TEST_F(TokenBucketTest, PromisesPassWithTime) {
  bucket_.Take(now_, kDepthBytes + kRate);
  bucket_.Promise(now_, 2 * kRate);
  now_ += absl::Seconds(10);
  bucket_.Take(now_, kDepthBytes + kRate / 4);
  EXPECT_EQ(bucket_.Promise(now_, kRate), absl::Milliseconds(250));
}

TEST_F(TokenBucketTest, PromisesReachOnlySoFar) {
  bucket_.Take(now_, kDepthBytes);
  bucket_.Take(now_, 1);
  for (int i = 0; i < 100; ++i) bucket_.Promise(now_, kRate);
  EXPECT_LE(bucket_.Promise(now_, kRate), TokenBucket::kPromisesMax + absl::Milliseconds(1));
  EXPECT_GE(bucket_.Promise(now_, kRate), TokenBucket::kPromisesMax - absl::Milliseconds(1));
}

TEST_F(TokenBucketTest, LoopsTakeAtOnce) {
  std::vector<std::thread> loops;
  for (int i = 0; i < 4; ++i) {
    loops.emplace_back([this] {
      for (int k = 0; k < 1024; ++k) bucket_.Take(now_, kRate / 1024);
    });
  }
  for (std::thread& loop : loops) loop.join();
  // Four seconds' worth, less what it began with. Each is rounded down to a nanosecond.
  EXPECT_TRUE(bucket_.IsEmpty(now_ + absl::Milliseconds(3499)));
  EXPECT_FALSE(bucket_.IsEmpty(now_ + absl::Milliseconds(3500)));
}

}  // namespace
}  // namespace covey::server
