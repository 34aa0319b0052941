// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <vector>

#include "common/base/random.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "server/replication/push_history.h"
#include "server/shard/norm_gate.h"
#include "server/testing/chain_fixture.h"
#include "server/testing/shard_fixture.h"

namespace covey::server {
namespace {

constexpr Contract kAsync{.kind = Contract::Kind::kAsync};
constexpr Contract kBsp{.kind = Contract::Kind::kBsp};
constexpr uint32_t kGroups = 3;
// Pushes of a producer that make its usual norm known.
constexpr uint64_t kLearning = 8;

TestJob GatedJob(const Contract& contract, double factor = 10, uint32_t groups = kGroups) {
  TestJob job(contract, groups);
  job.spec().mutable_norm_gate()->set_factor(factor);
  return job;
}

// Every group has pushed gradients of norm 2 up to the step.
void Learn(ShardDriver& driver, uint64_t steps = kLearning, uint32_t groups = kGroups) {
  for (uint64_t step = 1; step <= steps; ++step) {
    for (uint32_t group = 1; group <= groups; ++group) {
      ASSERT_TRUE(
          StatusOf(driver.Deliver(driver.GroupPush(group, step, {1, 1, 1, -1})).front()).ok());
    }
  }
}

proto::PushReply Reply(const Message& message) {
  EXPECT_TRUE(StatusOf(message).ok()) << StatusOf(message);
  return message.envelope.push_reply();
}

std::vector<proto::GatedProducer> Gated(const ShardDriver& driver) {
  return const_cast<ShardDriver&>(driver)
      .actor()
      .FindShard({TableId(kTestTable), ShardIndex(0)})
      ->ReportGated();
}

TEST(NormGateTest, APushBeyondTheGateIsReceivedAndChangesNothing) {
  ShardDriver driver(GatedJob(kAsync));
  Learn(driver);
  const std::vector<float> before = driver.Values();
  const proto::PushReply wild = Reply(driver.Ask(driver.GroupPush(2, 9, {1e6, 0, 0, 0})));
  EXPECT_TRUE(wild.discarded());
  EXPECT_TRUE(wild.durable());
  EXPECT_EQ(wild.applied_version(), 0u);
  EXPECT_EQ(wild.state().version(), kGroups * kLearning);
  EXPECT_EQ(driver.Values(), before);
  const proto::PushReply next = Reply(driver.Ask(driver.GroupPush(2, 10, {1, 1, 1, 1})));
  EXPECT_FALSE(next.discarded());
  EXPECT_EQ(next.applied_version(), kGroups * kLearning + 1);
}

TEST(NormGateTest, ADuplicateOfAGatedPushIsAnsweredAlike) {
  ShardDriver driver(GatedJob(kAsync));
  Learn(driver);
  const Message wild = driver.GroupPush(2, 9, {1e6, 0, 0, 0});
  Reply(driver.Ask(wild));
  const proto::PushReply again = Reply(driver.Ask(wild));
  EXPECT_TRUE(again.duplicate());
  EXPECT_TRUE(again.discarded());
  ASSERT_EQ(Gated(driver).size(), 1u);
  EXPECT_EQ(Gated(driver)[0].beyond(), 1u);
}

TEST(NormGateTest, TheNormIsThatOfTheMeanGradient) {
  ShardDriver driver(GatedJob(kAsync));
  Learn(driver);
  // 30 times the sum, of as many samples.
  EXPECT_FALSE(Reply(driver.Ask(driver.GroupPush(1, 9, {30, 30, 30, 30}, 30))).discarded());
  EXPECT_TRUE(Reply(driver.Ask(driver.GroupPush(1, 10, {30, 30, 30, 30}, 1))).discarded());
}

TEST(NormGateTest, PassesAllWithoutAGateAndBeforeNormsAreKnown) {
  ShardDriver open{TestJob(kAsync, kGroups)};
  Learn(open);
  EXPECT_FALSE(Reply(open.Ask(open.GroupPush(1, 9, {1e6, 0, 0, 0}))).discarded());
  EXPECT_TRUE(Gated(open).empty());
  ShardDriver learning(GatedJob(kAsync));
  Learn(learning, kLearning - 1);
  EXPECT_FALSE(Reply(learning.Ask(learning.GroupPush(1, 8, {1e6, 0, 0, 0}))).discarded());
}

TEST(NormGateTest, APushIsAllowedUpToTheFactor) {
  ShardDriver driver(GatedJob(kAsync, 10));
  Learn(driver);
  EXPECT_FALSE(Reply(driver.Ask(driver.GroupPush(1, 9, {19.9f, 0, 0, 0}))).discarded());
  EXPECT_TRUE(Reply(driver.Ask(driver.GroupPush(2, 9, {20.1f, 0, 0, 0}))).discarded());
}

TEST(NormGateTest, OneWildProducerFromTheStartDoesNotMakeWildUsual) {
  ShardDriver driver(GatedJob(kAsync));
  for (uint64_t step = 1; step <= kLearning; ++step) {
    for (uint32_t group = 1; group <= kGroups; ++group) {
      const float size = group == 2 ? 1e6f : 1;
      driver.Deliver(driver.GroupPush(group, step, {size, size, size, size}));
    }
  }
  EXPECT_TRUE(Reply(driver.Ask(driver.GroupPush(2, 9, {1e6, 0, 0, 0}))).discarded());
  EXPECT_FALSE(Reply(driver.Ask(driver.GroupPush(1, 9, {1, 1, 1, 1}))).discarded());
}

TEST(NormGateTest, FollowsWhereTheNormsOfAllGrow) {
  ShardDriver driver(GatedJob(kAsync));
  Learn(driver);
  uint64_t kept_out = 0;
  for (uint64_t step = kLearning + 1; step <= kLearning + 40; ++step) {
    for (uint32_t group = 1; group <= kGroups; ++group) {
      kept_out +=
          Reply(driver.Ask(driver.GroupPush(group, step, {1000, 1000, 1000, 1000}))).discarded();
    }
  }
  EXPECT_GT(kept_out, kGroups);
  EXPECT_LE(kept_out, 20u * kGroups);
  EXPECT_FALSE(Reply(driver.Ask(driver.GroupPush(1, 49, {1000, 1000, 1000, 1000}))).discarded());
}

TEST(NormGateTest, UnderBspTheStepIsMadeOfTheOtherPushes) {
  ShardDriver driver(GatedJob(kBsp));
  Learn(driver);
  const std::vector<float> before = driver.Values();
  driver.Deliver(driver.GroupPush(1, 9, {1, 1, 1, 1}));
  driver.Deliver(driver.GroupPush(2, 9, {1e6, 1e6, 1e6, 1e6}));
  const std::vector<Message> replies = driver.Deliver(driver.GroupPush(3, 9, {3, 3, 3, 3}));
  EXPECT_EQ(replies.front().envelope.push_reply().applied_version(), kLearning + 1);
  std::vector<float> expected = before;
  for (float& value : expected) value -= 2;  // the mean of 1 and 3
  EXPECT_EQ(driver.Values(), expected);
}

TEST(NormGateTest, ANonFinitePushIsBeyondTheGateWhereItIsNotRefused) {
  TestJob job = GatedJob(kAsync);
  job.spec().set_non_finite(proto::ACCEPT);
  ShardDriver driver(job);
  Learn(driver);
  const std::vector<float> before = driver.Values();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(Reply(driver.Ask(driver.GroupPush(1, 9, {nan, 0, 0, 0}))).discarded());
  EXPECT_EQ(driver.Values(), before);
}

TEST(NormGateTest, NothingOfAQuarantinedProducerIsApplied) {
  TestJob job = GatedJob(kAsync);
  ShardDriver driver(job);
  Learn(driver);
  proto::QuarantinedProducer& quarantined = *job.view.add_quarantined();
  quarantined.set_is_group(true);
  quarantined.set_id(2);
  job.view.set_epoch(job.view.epoch() + 1);
  driver.AdoptView(job);
  EXPECT_TRUE(Reply(driver.Ask(driver.GroupPush(2, 9, {1, 1, 1, 1}))).discarded());
  EXPECT_FALSE(Reply(driver.Ask(driver.GroupPush(3, 9, {1, 1, 1, 1}))).discarded());
  // A client of the same number is another producer.
  job.view.mutable_quarantined(0)->set_is_group(false);
  job.view.set_epoch(job.view.epoch() + 1);
  driver.AdoptView(job);
  EXPECT_FALSE(Reply(driver.Ask(driver.GroupPush(2, 10, {1, 1, 1, 1}))).discarded());
}

TEST(NormGateTest, TheQuarantineConcernsTablesWithAGate) {
  TestJob job(kAsync, kGroups);
  proto::QuarantinedProducer& quarantined = *job.view.add_quarantined();
  quarantined.set_is_group(true);
  quarantined.set_id(2);
  ShardDriver driver(job);
  EXPECT_FALSE(Reply(driver.Ask(driver.GroupPush(2, 1, {1, 1, 1, 1}))).discarded());
}

TEST(NormGateTest, ReportsTheEvidence) {
  ShardDriver driver(GatedJob(kAsync));
  Learn(driver);
  EXPECT_TRUE(Gated(driver).empty());
  for (uint64_t step = 9; step <= 11; ++step) {
    Reply(driver.Ask(driver.GroupPush(2, step, {2e6, 0, 0, 0})));
  }
  ASSERT_EQ(Gated(driver).size(), 1u);
  const proto::GatedProducer gated = Gated(driver)[0];
  EXPECT_TRUE(gated.is_group());
  EXPECT_EQ(gated.id(), 2u);
  EXPECT_EQ(gated.table(), kTestTable);
  EXPECT_EQ(gated.shard(), 0u);
  EXPECT_EQ(gated.pushes(), 11u);
  EXPECT_EQ(gated.beyond(), 3u);
  EXPECT_EQ(gated.beyond_in_row(), 3u);
  EXPECT_GT(gated.usual(), 2);
  EXPECT_EQ(gated.usual_of_others(), 2);
  Reply(driver.Ask(driver.GroupPush(2, 12, {1, 1, 1, 1})));
  EXPECT_EQ(Gated(driver)[0].beyond_in_row(), 0u);
  EXPECT_EQ(Gated(driver)[0].beyond(), 3u);
}

// The report looks at all producers once; the median of the others is that of a search for each.
TEST(NormGateTest, TellsOfEachProducerTheUsualNormOfTheOthers) {
  const NormGate gate(NormGateRules{.factor = 10});
  Random random(7);
  for (uint32_t groups = 1; groups <= 12; ++groups) {
    const auto view = *ClusterView::Make(TestJob(kAsync, groups).view);
    PushHistory history;
    for (uint32_t group = 1; group <= groups; ++group) {
      const Producer producer{.kind = Producer::Kind::kGroup, .id = group};
      const float norm = static_cast<float>(1 + random.Below(3));
      for (uint64_t step = 1; step <= kLearning - 2 + random.Below(4); ++step) {
        history.Note({.producer = producer, .incarnation = 1, .sequence = step}, Version(step));
        history.NoteNorm(producer, norm, /*is_beyond=*/true);
      }
    }
    const std::vector<proto::GatedProducer> report = gate.Report(history, *view);
    ASSERT_EQ(report.size(), groups);
    for (const proto::GatedProducer& gated : report) {
      const std::optional<float> others =
          history.UsualNorm([&](const Producer& each) { return each.id != gated.id(); });
      EXPECT_EQ(gated.usual_of_others(), others.value_or(0));
    }
  }
}

// What a head has learned is content of its replicas.
class GatedChain : public ::testing::Test {
 protected:
  GatedChain() { chain_.job.spec().mutable_norm_gate()->set_factor(10); }

  Message GroupPush(uint32_t group, uint64_t step, float value) {
    return requests_.GroupPush(group, step, {value, value, value, value});
  }
  void Learn() {
    chain_.PublishToAll();
    for (uint64_t step = 1; step <= kLearning; ++step) {
      for (uint32_t group = 1; group <= kGroups; ++group) {
        Reply(chain_.Ask(0, GroupPush(group, step, 1)));
      }
    }
  }
  std::vector<float> Values(uint32_t server) {
    return ShardDriver::ValuesIn(chain_.Ask(server, requests_.Pull()));
  }

  ChainDriver chain_{kAsync, kGroups, 3, 2};
  ShardDriver requests_{TestJob(kAsync, kGroups)};
};

TEST_F(GatedChain, TheNextHeadJudgesAlike) {
  Learn();
  EXPECT_TRUE(Reply(chain_.Ask(0, GroupPush(2, 9, 1e6))).discarded());
  EXPECT_EQ(chain_.Digest(0), chain_.Digest(1));
  const std::vector<float> before = Values(0);
  chain_.SetChain({{1, false}});
  chain_.PublishToAll();
  EXPECT_TRUE(Reply(chain_.Ask(1, GroupPush(2, 10, 1e6))).discarded());
  EXPECT_EQ(Values(1), before);
}

TEST_F(GatedChain, AServerThatJoinsIsGivenTheNorms) {
  Learn();
  Reply(chain_.Ask(0, GroupPush(2, 9, 1e6)));
  chain_.SetChain({{0, false}, {1, false}, {2, true}});
  chain_.PublishToAll();
  chain_.Pass(absl::Milliseconds(50));
  EXPECT_EQ(chain_.Digest(2), chain_.Digest(0));
  chain_.SetChain({{2, false}});
  chain_.PublishToAll();
  EXPECT_TRUE(Reply(chain_.Ask(2, GroupPush(2, 10, 1e6))).discarded());
}

TEST_F(GatedChain, PlantedBugsShow) {
  {
    const BugInPlace bug(PlantedBug::kForgetNormsOnTakeover);
    Learn();
    chain_.SetChain({{1, false}});
    chain_.PublishToAll();
    EXPECT_FALSE(Reply(chain_.Ask(1, GroupPush(2, 9, 1e6))).discarded());
  }
  const BugInPlace bug(PlantedBug::kIgnoreNormGate);
  ShardDriver driver(GatedJob(kAsync));
  server::Learn(driver);
  EXPECT_FALSE(Reply(driver.Ask(driver.GroupPush(2, 9, {1e6, 0, 0, 0}))).discarded());
}

}  // namespace
}  // namespace covey::server
