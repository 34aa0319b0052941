// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/shard_fixture.h"

namespace covey::server {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Code = absl::StatusCode;

constexpr Contract kBsp{.kind = Contract::Kind::kBsp};
constexpr Contract kAsync{.kind = Contract::Kind::kAsync};

const proto::PushReply& Pushed(const Message& reply) { return reply.envelope.push_reply(); }

Message AtRate(Message push, double factor) {
  push.envelope.mutable_push_request()->set_rate_factor(factor);
  return push;
}

TestJob WithMomentum(const Contract& contract, uint32_t groups) {
  TestJob job(contract, groups);
  job.spec().mutable_optimizer()->set_kind(proto::Optimizer::MOMENTUM);
  job.spec().mutable_optimizer()->set_momentum(0.5);
  return job;
}

TEST(ShardRates, APushMultipliesTheLearningRate) {
  ShardDriver driver(TestJob(kAsync, 1));
  driver.Ask(AtRate(driver.GroupPush(1, 1, {4, 4, 4, 4}), 0.25));
  EXPECT_THAT(driver.Values(), ElementsAre(-1, -1, -1, -1));
  driver.Ask(AtRate(driver.GroupPush(1, 2, {4, 4, 4, 4}), 0));
  EXPECT_THAT(driver.Values(), ElementsAre(-1, -1, -1, -1));
  driver.Ask(driver.GroupPush(1, 3, {4, 4, 4, 4}));
  EXPECT_THAT(driver.Values(), ElementsAre(-5, -5, -5, -5));
}

TEST(ShardRates, AnUpdateTakesTheMeanByItsSamples) {
  ShardDriver driver(TestJob(kBsp, 2));
  driver.Deliver(AtRate(driver.GroupPush(1, 1, {4, 4, 4, 4}, 1), 1));
  driver.Deliver(AtRate(driver.GroupPush(2, 1, {12, 12, 12, 12}, 3), 0.5));
  EXPECT_THAT(driver.Values(), Each(-16.0f / 4 * 0.625f));
  // Of equal factors it is that factor, to the last bit.
  const float before = driver.Values()[0];
  driver.Deliver(AtRate(driver.GroupPush(1, 2, {3, 3, 3, 3}, 3), 0.1));
  driver.Deliver(AtRate(driver.GroupPush(2, 2, {7, 7, 7, 7}, 7), 0.1));
  EXPECT_THAT(driver.Values(), Each(static_cast<float>(before - 0.1f * 1)));
}

TEST(ShardRates, RefusesOtherFactors) {
  ShardDriver driver(TestJob(kAsync, 1));
  for (const double factor : {-0.1, 1.1e9, std::numeric_limits<double>::infinity(),
                              std::numeric_limits<double>::quiet_NaN()}) {
    const Message reply = driver.Ask(AtRate(driver.GroupPush(1, 1, {4, 4, 4, 4}), factor));
    EXPECT_EQ(StatusOf(reply).code(), Code::kInvalidArgument) << factor;
    EXPECT_THAT(std::string(StatusOf(reply).message()), HasSubstr("multiplies the learning rate"));
  }
  EXPECT_THAT(driver.Values(), Each(0));
}

TEST(ShardRates, AStepWithoutSamplesChangesNothing) {
  ShardDriver driver(WithMomentum(kBsp, 2));
  driver.Deliver(driver.GroupPush(1, 1, {2, 2, 2, 2}));
  driver.Deliver(driver.GroupPush(2, 1, {2, 2, 2, 2}));
  EXPECT_THAT(driver.Values(), Each(-2));
  const Message empty =
      ShardDriver::WithValues(driver.GroupPush(1, 2, {9, 9, 9, 9}, /*samples=*/0), 2);
  EXPECT_TRUE(driver.Deliver(empty).empty()) << "group 2 may have samples";
  const std::vector<Message> replies = driver.Deliver(
      ShardDriver::WithValues(driver.GroupPush(2, 2, {9, 9, 9, 9}, /*samples=*/0), 2));
  ASSERT_EQ(replies.size(), 2u);
  for (const Message& reply : replies) {
    EXPECT_EQ(StatusOf(reply).code(), Code::kOk) << StatusOf(reply);
    EXPECT_THAT(ShardDriver::ValuesIn(reply), Each(-2));
    EXPECT_EQ(Pushed(reply).applied_version(), 1u);
    EXPECT_TRUE(Pushed(reply).durable());
    EXPECT_EQ(Pushed(reply).state().version(), 1u);
    EXPECT_EQ(Pushed(reply).state().samples(), 2u);
    EXPECT_EQ(Pushed(reply).state().clocks(0).step(), 2u);
    EXPECT_EQ(Pushed(reply).state().clocks(1).step(), 2u);
  }
  EXPECT_TRUE(Pushed(driver.Ask(empty)).duplicate());
  // The momentum is that of the first step.
  driver.Deliver(driver.GroupPush(1, 3, {2, 2, 2, 2}));
  driver.Deliver(driver.GroupPush(2, 3, {2, 2, 2, 2}));
  EXPECT_THAT(driver.Values(), Each(-2 - (2 + 0.5f * 2)));
}

TEST(ShardRates, APushWithoutSamplesAddsNothingToAnUpdate) {
  for (const bool comes_first : {true, false}) {
    ShardDriver driver(TestJob(kBsp, 2));
    const Message empty = AtRate(driver.GroupPush(1, 1, {9, 9, 9, 9}, /*samples=*/0), 7);
    const Message full = driver.GroupPush(2, 1, {4, 4, 4, 4}, 2);
    driver.Deliver(comes_first ? empty : full);
    driver.Deliver(comes_first ? full : empty);
    EXPECT_THAT(driver.Values(), Each(-2));
  }
}

TEST(ShardRates, PushesWithoutSamplesCountInABuffer) {
  ShardDriver driver(TestJob({.kind = Contract::Kind::kBuffered, .buffer = 2}, 2));
  driver.Deliver(driver.GroupPush(1, 1, {9, 9, 9, 9}, /*samples=*/0));
  driver.Deliver(driver.GroupPush(2, 1, {4, 4, 4, 4}, 2));
  EXPECT_THAT(driver.Values(), Each(-2));
  driver.Deliver(driver.GroupPush(1, 2, {9, 9, 9, 9}, /*samples=*/0));
  driver.Deliver(driver.GroupPush(2, 2, {9, 9, 9, 9}, /*samples=*/0));
  EXPECT_THAT(driver.Values(), Each(-2));
  driver.Deliver(driver.GroupPush(1, 3, {4, 4, 4, 4}));
  driver.Deliver(driver.GroupPush(2, 3, {4, 4, 4, 4}));
  EXPECT_THAT(driver.Values(), Each(-6));
}

TEST(ShardRates, AClientHasSamples) {
  ShardDriver driver(TestJob(kAsync, 1));
  const Message reply = driver.Ask(driver.ClientPush(1, {4, 4, 4, 4}, /*samples=*/0));
  EXPECT_EQ(StatusOf(reply).code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(StatusOf(reply).message()), HasSubstr("push at least 1"));
}

}  // namespace
}  // namespace covey::server
