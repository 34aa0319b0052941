// SPDX-License-Identifier: Apache-2.0
#include "server/rate_limit.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/chain_fixture.h"
#include "server/testing/shard_fixture.h"

// The rate that a server may have, as its clients meet it.

namespace covey::server {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using Code = absl::StatusCode;

constexpr Contract kAsync{.kind = Contract::Kind::kAsync};
// A push, or the values of the table: 16 bytes. The bucket holds two of them.
constexpr uint64_t kRate = 64;
const std::vector<float> kOnes = {1, 1, 1, 1};

Code CodeOf(const Message& reply) { return StatusOf(reply).code(); }
uint32_t RetryAfterMs(const Message& reply) { return reply.envelope.status().retry_after_ms(); }

ShardActor::Options Limited(std::shared_ptr<TokenBucket> bucket) {
  ShardActor::Options options;
  options.rate = std::move(bucket);
  return options;
}

class RateLimitTest : public ::testing::Test {
 protected:
  Code Push() { return CodeOf(driver_.Ask(driver_.ClientPush(++pushes_, kOnes))); }
  uint64_t version() const {
    return driver_.actor().FindShard({TableId(kTestTable), ShardIndex(0)})->version().value();
  }
  // The last request may take more than there is.
  void UseUp() {
    for (int i = 0; i < 3; ++i) ASSERT_EQ(Push(), Code::kOk);
  }

  const std::shared_ptr<TokenBucket> bucket_ = std::make_shared<TokenBucket>(kRate);
  mutable ShardDriver driver_{TestJob(kAsync, 0), Limited(bucket_)};
  uint64_t pushes_ = 0;
};

TEST_F(RateLimitTest, APushBeyondTheRateIsRefusedAndPassesLater) {
  UseUp();
  const Message push = driver_.ClientPush(4, kOnes);
  const Message refusal = driver_.Ask(push);
  EXPECT_EQ(CodeOf(refusal), Code::kResourceExhausted);
  EXPECT_THAT(std::string(StatusOf(refusal).message()),
              HasSubstr("64 bytes of tensors per second"));
  EXPECT_THAT(std::string(StatusOf(refusal).message()), HasSubstr("--rate-max"));
  EXPECT_EQ(RetryAfterMs(refusal), 250u);
  EXPECT_EQ(driver_.actor().counters().refused, 1u);
  EXPECT_EQ(version(), 3u);
  driver_.Pass(absl::Milliseconds(249));
  EXPECT_EQ(CodeOf(driver_.Ask(push)), Code::kResourceExhausted);
  driver_.Pass(absl::Milliseconds(1));
  EXPECT_EQ(CodeOf(driver_.Ask(push)), Code::kOk);
  EXPECT_EQ(version(), 4u);
}

TEST_F(RateLimitTest, RefusedBytesDoNotCountAndTheirSendersTakeTurns) {
  UseUp();
  for (uint32_t turn = 1; turn <= 8; ++turn) {
    const Message refusal = driver_.Ask(driver_.ClientPush(4, kOnes));
    EXPECT_EQ(RetryAfterMs(refusal), turn * 250);
  }
  driver_.Pass(absl::Milliseconds(250));
  EXPECT_EQ(CodeOf(driver_.Ask(driver_.ClientPush(4, kOnes))), Code::kOk);
}

TEST_F(RateLimitTest, ValuesThatAreSentCount) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(CodeOf(driver_.Ask(driver_.Pull())), Code::kOk);
  }
  const Message refusal = driver_.Ask(driver_.Pull());
  EXPECT_EQ(CodeOf(refusal), Code::kResourceExhausted);
  EXPECT_THAT(refusal.frames, SizeIs(0));
  EXPECT_EQ(RetryAfterMs(refusal), 250u);
  EXPECT_EQ(Push(), Code::kResourceExhausted);
  driver_.Pass(absl::Milliseconds(250));
  EXPECT_EQ(CodeOf(driver_.Ask(driver_.Pull())), Code::kOk);
}

TEST_F(RateLimitTest, ARequestLargerThanTheBucketPasses) {
  ShardDriver large(TestJob(kAsync, 0, /*elements=*/1 << 10), Limited(bucket_));
  const Message push = large.ClientPush(1, std::vector<float>(1 << 10, 1));
  EXPECT_EQ(CodeOf(large.Ask(push)), Code::kOk);
  // 4 KiB, less what the bucket held: 63.5 s.
  EXPECT_TRUE(bucket_->IsEmpty(large.now() + absl::Milliseconds(63499)));
  EXPECT_FALSE(bucket_->IsEmpty(large.now() + absl::Milliseconds(63500)));
}

TEST_F(RateLimitTest, QueriesWhetherAPushArrivedAreNeverRefused) {
  UseUp();
  Message query = driver_.ClientPush(3, kOnes);
  query.frames.clear();
  const Message reply = driver_.Ask(query);
  EXPECT_EQ(CodeOf(reply), Code::kOk);
  EXPECT_TRUE(reply.envelope.push_reply().duplicate());
}

TEST_F(RateLimitTest, LoopsShareIt) {
  UseUp();
  ShardDriver other(TestJob(kAsync, 0), Limited(bucket_));
  EXPECT_EQ(CodeOf(other.Ask(other.ClientPush(1, kOnes))), Code::kResourceExhausted);
}

TEST_F(RateLimitTest, RecordsAlongAChainAreNeverRefused) {
  ChainDriver chain(kAsync, 0, 2, 2);
  chain.options = Limited(bucket_);
  chain.Restart(1);
  chain.PublishToAll();
  bucket_->Take(chain.now, 1 << 20);
  for (uint64_t i = 1; i <= 8; ++i) {
    const Message reply = chain.Ask(0, driver_.ClientPush(i, kOnes));
    EXPECT_EQ(CodeOf(reply), Code::kOk);
    EXPECT_TRUE(reply.envelope.push_reply().durable());
  }
  EXPECT_EQ(chain.Digest(0), chain.Digest(1));
  EXPECT_NE(chain.Digest(1), 0u);
}

TEST_F(RateLimitTest, WithoutABucketThereIsNoLimit) {
  ShardDriver driver(TestJob(kAsync, 0));
  for (uint64_t i = 1; i <= 100; ++i) {
    ASSERT_EQ(CodeOf(driver.Ask(driver.ClientPush(i, kOnes))), Code::kOk);
  }
}

TEST_F(RateLimitTest, AnotherRateHoldsFromTheNextRequestOn) {
  UseUp();
  EXPECT_EQ(Push(), Code::kResourceExhausted);
  driver_.actor().SetRate(nullptr);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Push(), Code::kOk);
  const auto slower = std::make_shared<TokenBucket>(kRate / 4);
  driver_.actor().SetRate(slower);
  EXPECT_EQ(Push(), Code::kOk);
  const Message refusal = driver_.Ask(driver_.ClientPush(++pushes_, kOnes));
  EXPECT_EQ(CodeOf(refusal), Code::kResourceExhausted);
  EXPECT_THAT(std::string(StatusOf(refusal).message()),
              HasSubstr("16 bytes of tensors per second"));
}

}  // namespace
}  // namespace covey::server
