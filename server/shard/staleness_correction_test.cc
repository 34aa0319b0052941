// SPDX-License-Identifier: Apache-2.0

// How a shard treats late gradients, push by push. The benefit is tested in
// implicit_momentum_test.cc.

#include "server/shard/staleness_correction.h"

#include <optional>
#include <vector>

#include "common/base/random.h"
#include "common/cluster/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/replication/table_rules.h"
#include "server/testing/shard_fixture.h"

namespace covey::server {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

constexpr Contract kAsync{.kind = Contract::Kind::kAsync};
constexpr Contract kBsp{.kind = Contract::Kind::kBsp};

constexpr ShardId kShard{TableId(kTestTable), ShardIndex(0)};

Message OnVersion(Message push, uint64_t version) {
  push.envelope.mutable_push_request()->set_base_version(version);
  return push;
}

Message AsGroup(Message pull, uint32_t group) {
  SetSender(10 + group, pull);
  pull.envelope.mutable_pull_request()->mutable_read()->set_group(group);
  return pull;
}

TestJob Compensated(double lambda, uint32_t groups, const Contract& contract = kAsync) {
  TestJob job(contract, groups);
  job.spec().mutable_asynchrony()->set_delay_compensation(lambda);
  return job;
}

TEST(DelayCompensation, MovesAGradientToThePresentValues) {
  for (const double lambda : {0.0, 0.5}) {
    ShardDriver driver(Compensated(lambda, 2));
    driver.Ask(AsGroup(driver.Pull(), 1));
    driver.Ask(AsGroup(driver.Pull(), 2));
    // Computed on the present values: nothing to compensate.
    driver.Ask(driver.GroupPush(1, 1, {1, 1, 1, 1}));
    EXPECT_THAT(driver.Values(), Each(-1));
    // Computed on version 0, one lower than 1 in each element. The sum of two examples:
    // 4 + 0.5 / 2 * 4^2 * (-1 - 0) = 0.
    driver.Ask(driver.GroupPush(2, 1, {4, 4, 4, 0}, 2));
    if (lambda > 0) {
      EXPECT_THAT(driver.Values(), ElementsAre(-1, -1, -1, -1));
    } else {
      EXPECT_THAT(driver.Values(), ElementsAre(-3, -3, -3, -1));
    }
  }
}

TEST(DelayCompensation, StartsFromTheLastAnswerToAPush) {
  ShardDriver driver(Compensated(1, 2));
  // By their replies both are at version 1 or 2; a later read by group 1 does not count.
  driver.Ask(ShardDriver::WithValues(driver.GroupPush(1, 1, {1, 1, 1, 1}), 1));
  driver.Ask(ShardDriver::WithValues(driver.GroupPush(2, 1, {1, 1, 1, 1}), 1));
  EXPECT_THAT(driver.Values(), Each(-2));
  driver.Ask(AsGroup(driver.Pull(), 1));
  // 1 + 1^2 * (-2 - -1) = 0.
  driver.Ask(OnVersion(driver.GroupPush(1, 2, {1, 1, 1, 1}), 1));
  EXPECT_THAT(driver.Values(), Each(-2));
  // Group 2 is at version 2, and the values have not moved since, although the version has.
  driver.Ask(OnVersion(driver.GroupPush(2, 2, {1, 1, 1, 1}), 2));
  EXPECT_THAT(driver.Values(), Each(-3));
  // The version is not the last one that the group was sent: no compensation.
  driver.Ask(OnVersion(driver.GroupPush(2, 3, {1, 1, 1, 1}), 1));
  EXPECT_THAT(driver.Values(), Each(-4));
}

TEST(DelayCompensation, ComesBeforeTheBufferedSum) {
  ShardDriver driver(Compensated(1, 3, {.kind = Contract::Kind::kBuffered, .buffer = 2}));
  for (const uint32_t group : {1, 2, 3}) driver.Ask(AsGroup(driver.Pull(), group));
  driver.Ask(driver.GroupPush(1, 1, {1, 1, 1, 1}));
  driver.Ask(driver.GroupPush(2, 1, {1, 1, 1, 1}));
  EXPECT_THAT(driver.Values(), Each(-1));
  // Late by one update: 2 + 4 * (-1 - 0) = -2. The other producer is no group and was sent nothing.
  driver.Ask(driver.GroupPush(3, 1, {2, 2, 2, 2}));
  driver.Ask(driver.ClientPush(1, {4, 4, 4, 4}));
  EXPECT_THAT(driver.Values(), Each(-2));
}

TEST(DelayCompensation, AClientComputesOnItsLastPull) {
  ShardDriver driver(Compensated(1, 1));
  driver.Ask(driver.GroupPush(1, 1, {1, 1, 1, 1}));
  EXPECT_THAT(driver.Values(), Each(-1));  // pulled by the client
  driver.Ask(driver.GroupPush(1, 2, {1, 1, 1, 1}));
  driver.Ask(OnVersion(driver.ClientPush(1, {1, 1, 1, 1}), 1));  // 1 + 1 * (-2 - -1)
  EXPECT_THAT(driver.Values(), Each(-2));
}

TEST(DelayCompensation, LetsGoOfTheValuesOfAGroupThatIsGone) {
  TestJob job = Compensated(1, 2);
  ShardDriver driver(job, {.spare_bytes_max = 0});
  const Message sent = driver.Ask(ShardDriver::WithValues(driver.GroupPush(1, 1, {1, 1, 1, 1}), 1));
  // The loop's spare memory is reused.
  for (uint64_t step = 1; step <= 4; ++step) {
    driver.Ask(ShardDriver::WithValues(driver.GroupPush(2, step, {1, 1, 1, 1}), step));
  }
  EXPECT_FALSE(sent.frames[0].IsUnique());
  job.EndGroup(1, proto::Group::DONE);
  driver.AdoptView(job);
  EXPECT_TRUE(sent.frames[0].IsUnique());
}

class SentValues : public ::testing::Test {
 protected:
  static Producer Client(uint64_t id) { return {.kind = Producer::Kind::kClient, .id = id}; }

  BufferPool spares_{1 << 20};
  StalenessCorrection correction_{{.delay_compensation = 1}, {}, spares_};
  const Buffer values_ = ShardDriver::Floats({1, 2});
};

TEST_F(SentValues, AreReleasedWithTheirProducer) {
  correction_.RecordSent(Client(1), Version(1), values_, false);
  correction_.RecordSent(Client(2), Version(1), values_, false);
  correction_.Forget([](const Producer& producer) { return producer.id == 1; });
  EXPECT_FALSE(values_.IsUnique());
  // Replaced by the next reply.
  correction_.RecordSent(Client(2), Version(2), Buffer::CopyOf(values_.bytes()), false);
  EXPECT_TRUE(values_.IsUnique());
}

TEST_F(SentValues, AreKeptForSoManyProducersOnly) {
  for (uint64_t id = 1; id <= kProducersPerShardMax; ++id) {
    correction_.RecordSent(Client(id), Version(1), Buffer(), false);
  }
  correction_.RecordSent(Client(kProducersPerShardMax + 1), Version(1), values_, false);
  EXPECT_TRUE(values_.IsUnique());
}

TEST_F(SentValues, AreNotKeptForNothing) {
  StalenessCorrection off({}, {}, spares_);
  off.RecordSent(Client(1), Version(1), values_, false);
  EXPECT_TRUE(values_.IsUnique());
}

TEST(ScaledRate, DividesByOnePlusTheStaleness) {
  TestJob job(kAsync, 0);
  job.spec().mutable_asynchrony()->set_staleness_scaled_rate(true);
  ShardDriver driver(job);
  driver.Ask(driver.ClientPush(1, {3, 3, 3, 3}));  // unknown: unchanged
  driver.Ask(OnVersion(driver.ClientPush(2, {3, 3, 3, 3}), 1));
  EXPECT_THAT(driver.Values(), Each(-6));
  driver.Ask(driver.ClientPush(3, {3, 3, 3, 3}));
  driver.Ask(OnVersion(driver.ClientPush(4, {3, 3, 3, 3}), 1));  // two updates in between
  EXPECT_THAT(driver.Values(), Each(-10));
  driver.Ask(OnVersion(driver.ClientPush(5, {3, 3, 3, 3}), 99));  // no such version yet
  EXPECT_THAT(driver.Values(), Each(-13));
}

TEST(ScaledRate, OfASumFollowsTheMeanOfItsPushes) {
  TestJob job({.kind = Contract::Kind::kBuffered, .buffer = 2}, 0);
  job.spec().mutable_asynchrony()->set_staleness_scaled_rate(true);
  ShardDriver driver(job);
  for (uint64_t sequence = 1; sequence <= 6; ++sequence) {
    driver.Ask(driver.ClientPush(sequence, {1, 1, 1, 1}));
  }
  EXPECT_THAT(driver.Values(), Each(-3));
  driver.Ask(OnVersion(driver.ClientPush(7, {4, 4, 4, 4}), 3));
  driver.Ask(OnVersion(driver.ClientPush(8, {4, 4, 4, 4}), 1));
  EXPECT_THAT(driver.Values(), Each(-5));  // 4 / (1 + (0 + 2) / 2)
}

TestJob Governed(double target, uint32_t groups, const Contract& contract, bool governed = true) {
  TestJob job(contract, groups);
  job.spec().mutable_optimizer()->set_kind(proto::Optimizer::MOMENTUM);
  job.spec().mutable_optimizer()->set_momentum(target);
  job.spec().mutable_asynchrony()->set_automatic_momentum(governed);
  return job;
}

TEST(AutomaticMomentum, TakesWhatAsynchronyAddsOffTheTarget) {
  ShardDriver driver(Governed(0.75, 0, kAsync));
  driver.Ask(driver.ClientPush(1, {1, 1, 1, 1}));
  driver.Ask(driver.ClientPush(2, {1, 1, 1, 1}));  // no staleness is known: momentum 0.75
  EXPECT_THAT(driver.Values(), Each(-2.75));
  // One update late, so half of the momentum is implicit, and a round has two updates.
  driver.Ask(OnVersion(driver.ClientPush(3, {1, 1, 1, 1}), 1));
  const float velocity = 0.25f * 1.75f + 1;
  EXPECT_THAT(driver.Values(), Each(FloatNear(-2.75f - 0.5f * (0.75f / 0.25f) * velocity, 1e-6f)));

  const proto::TableAsynchrony report = driver.actor().FindShard(kShard)->ReportAsynchrony();
  EXPECT_EQ(report.table(), kTestTable);
  EXPECT_EQ(report.updates(), 3u);
  EXPECT_EQ(report.staleness(), 1);
  EXPECT_EQ(report.implicit_momentum(), 0.5);
  EXPECT_EQ(report.explicit_momentum(), 0.25);
  EXPECT_EQ(report.target_momentum(), 0.75);
}

std::vector<float> TrainBsp(bool governed) {
  ShardDriver driver(Governed(0.9, 2, kBsp, governed));
  Random random(5);
  const auto element = [&] { return static_cast<float>(random.Uniform() - 0.5); };
  for (uint64_t step = 1; step <= 20; ++step) {
    for (const uint32_t group : {1, 2}) {
      driver.Ask(
          OnVersion(driver.GroupPush(group, step, {element(), element(), element(), element()}, 3),
                    step - 1));
    }
  }
  return driver.Values();
}

TEST(AutomaticMomentum, ChangesNoBitOfASynchronousRun) {
  EXPECT_EQ(TrainBsp(true), TrainBsp(false));
}

TEST(AutomaticMomentum, MeasuresAlsoWhatItDoesNotGovern) {
  ShardDriver driver(Governed(0.75, 0, kAsync, false));
  for (uint64_t sequence = 1; sequence <= 4; ++sequence) {
    driver.Ask(OnVersion(driver.ClientPush(sequence, {1, 1, 1, 1}), 1));
  }
  const proto::TableAsynchrony report = driver.actor().FindShard(kShard)->ReportAsynchrony();
  EXPECT_EQ(report.staleness(), 1);  // of 0, 1 and 2; the first one's version is ahead
  EXPECT_EQ(report.target_momentum(), 0);
  EXPECT_EQ(report.explicit_momentum(), 0);
  // 1, 1.75, 2.3125, 2.734375 with momentum 0.75 throughout.
  EXPECT_THAT(driver.Values(), Each(-7.796875));
}

TEST(StalenessCorrection, IsReadFromTheTablesDefinition) {
  TestJob job = Governed(0.75, 0, kAsync);
  proto::Asynchrony& asynchrony = *job.spec().mutable_asynchrony();
  const proto::Table& table = job.view.tables(0);
  auto rules = RulesOf(table, table.shards(0));
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_EQ(rules->asynchrony.target_momentum, 0.75);
  EXPECT_EQ(rules->asynchrony.delay_compensation, 0);
  EXPECT_FALSE(rules->asynchrony.scales_rate);

  asynchrony.set_delay_compensation(10.5);
  EXPECT_THAT(RulesOf(table, table.shards(0)).status().ToString(),
              HasSubstr("delay_compensation = 10.5"));
  asynchrony.set_delay_compensation(0.5);
  asynchrony.set_staleness_scaled_rate(true);
  EXPECT_EQ(RulesOf(table, table.shards(0)).status().code(), absl::StatusCode::kInvalidArgument);
  asynchrony.set_staleness_scaled_rate(false);
  job.spec().mutable_optimizer()->set_kind(proto::Optimizer::ADAM);
  EXPECT_THAT(RulesOf(table, table.shards(0)).status().ToString(),
              HasSubstr("the optimizer has no momentum"));
  asynchrony.set_automatic_momentum(false);
  asynchrony.set_staleness_scaled_rate(true);
  rules = RulesOf(table, table.shards(0));
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_EQ(rules->asynchrony.target_momentum, std::nullopt);
  EXPECT_EQ(rules->asynchrony.delay_compensation, 0.5);
  EXPECT_TRUE(rules->asynchrony.scales_rate);
}

TEST(StalenessCorrection, TravelsToTheControlLoopOncePerTable) {
  ShardActor actor({});
  Outbox outbox;
  absl::Time now = absl::UnixEpoch();
  TestJob job(kAsync, 0, 4, 3);
  Message view;
  view.set_to({kTestServer, 1});
  *view.envelope.mutable_watch_view_reply()->mutable_view() = job.view;
  actor.Receive(now, view, outbox);
  while (actor.NextWake() <= now) actor.Wake(now, outbox);
  now += absl::Seconds(1);
  actor.Wake(now, outbox);
  const std::vector<Message> sent = outbox.TakeMessages();
  ASSERT_EQ(sent.size(), 1u);
  const proto::ServerLoad& load = sent[0].envelope.heartbeat_request().load();
  ASSERT_EQ(load.tables_size(), 1);
  EXPECT_EQ(load.tables(0).table(), kTestTable);
}

}  // namespace
}  // namespace covey::server
