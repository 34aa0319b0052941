// SPDX-License-Identifier: Apache-2.0
#include "server/replay/replay.h"

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/recording_fixture.h"

namespace covey::server {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kElements = 1000;
constexpr Contract kAsync{.kind = Contract::Kind::kAsync};

absl::Status GoOn() { return absl::OkStatus(); }

TestJob JobOf(const Contract& contract, proto::Optimizer::Kind optimizer) {
  TestJob job(contract, 2, kElements);
  job.spec().mutable_initializer()->set_kind(proto::Initializer::NORMAL);
  job.spec().mutable_initializer()->set_b(1);
  job.spec().mutable_optimizer()->set_kind(optimizer);
  job.spec().mutable_learning_rate()->set_base(0.01);
  return job;
}

std::vector<float> RandomGradient(Random& random) {
  std::vector<float> gradient(kElements);
  for (float& element : gradient) element = static_cast<float>(random.Uniform() - 0.5);
  return gradient;
}

// A recorded run, in which the groups push in an order that `random` decides.
struct RecordedRun {
  RecordedRun(const TestJob& job, int pushes) : recording(job) {
    Random random(1);
    uint64_t steps[] = {0, 0};
    for (int i = 0; i < pushes; ++i) {
      const uint32_t group = static_cast<uint32_t>(random.Below(2));
      Message push = recording.driver().GroupPush(group + 1, ++steps[group], RandomGradient(random),
                                                  1 + random.Below(9));
      // Of the versions so far, at most one per push.
      push.envelope.mutable_push_request()->set_base_version(1 + random.Below(i / 2 + 1));
      recording.Deliver(push);
    }
    const std::vector<float> final_values = recording.driver().Values();
    values = ShardDriver::Floats(final_values);
    result.emplace(recording.End());
  }

  RecordingDriver recording;
  Buffer values;
  std::optional<Recording> result;
};

bool AreEqual(const Buffer& a, const Buffer& b) {
  return std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin(), b.bytes().end());
}

TEST(Replay, IsBitEqualUnderEachOptimizer) {
  for (const auto optimizer : {proto::Optimizer::SGD, proto::Optimizer::NESTEROV,
                               proto::Optimizer::ADAM, proto::Optimizer::LAMB}) {
    const RecordedRun run(JobOf(kAsync, optimizer), 150);
    const auto replayed = ReplayShard(*run.result, run.result->shards().at(0), {}, nullptr, GoOn);
    ASSERT_TRUE(replayed.ok()) << replayed.status();
    EXPECT_FALSE(replayed->difference) << optimizer;
    EXPECT_EQ(replayed->records, 150u);
    EXPECT_EQ(replayed->pushes, 150u);
    EXPECT_EQ(replayed->digests, 3u);  // after 64, 128 and 150
    EXPECT_TRUE(AreEqual(replayed->values, run.values)) << optimizer;
  }
}

TEST(Replay, FunctionsAreDoneAgain) {
  TestJob job(kAsync, 1);
  job.spec().mutable_optimizer()->set_kind(proto::Optimizer::VECTORS);
  job.spec().mutable_optimizer()->set_vectors(2);
  RecordingDriver recording(job);
  ShardDriver& driver = recording.driver();
  for (uint64_t i = 1; i <= 100; ++i) {
    recording.Deliver(driver.GroupPush(1, i, {1, 2, 3, static_cast<float>(i)}));
    Message call = driver.ClientPush(i, {});
    call.frames.clear();
    proto::PushRequest& push = *call.envelope.mutable_push_request();
    push.clear_samples();
    proto::VectorFunction& function = *push.add_functions();
    function.set_kind(proto::VectorFunction::AXPY);
    function.set_source(1);
    function.set_scalar(0.01);
    recording.Deliver(call);
  }
  const Buffer values = ShardDriver::Floats(driver.Values());
  EXPECT_NE(values.As<float>()[3], 0);
  const Recording result = recording.End();
  const auto replayed = ReplayShard(result, result.shards().at(0), {}, nullptr, GoOn);
  ASSERT_TRUE(replayed.ok()) << replayed.status();
  EXPECT_FALSE(replayed->difference);
  EXPECT_EQ(replayed->updates, 200u);
  EXPECT_EQ(replayed->digests, 4u);  // after 64, 128, 192 and 200
  EXPECT_TRUE(AreEqual(replayed->values, values));
  const WhatIf what_if{.contract = Contract{.kind = Contract::Kind::kBuffered, .buffer = 2}};
  EXPECT_THAT(
      std::string(
          ReplayShard(result, result.shards().at(0), what_if, nullptr, GoOn).status().message()),
      HasSubstr("an update by functions"));
}

TEST(Replay, AnUpdateInFactorsIsRecordedAsElements) {
  TestJob job = JobOf(kAsync, proto::Optimizer::ADAM);
  job.spec().clear_shape();
  job.spec().add_shape(20);
  job.spec().add_shape(50);
  RecordingDriver recording(job);
  Random random(3);
  for (uint64_t i = 1; i <= 100; ++i) {
    std::vector<float> factors = RandomGradient(random);
    factors.resize(70);
    Message push = recording.driver().ClientPush(i, factors);
    push.envelope.mutable_push_request()->mutable_outer_product()->set_terms(1);
    for (const Message& reply : recording.Deliver(push)) ASSERT_TRUE(StatusOf(reply).ok());
  }
  const Buffer values = ShardDriver::Floats(recording.driver().Values());
  const Recording result = recording.End();
  const auto replayed = ReplayShard(result, result.shards().at(0), {}, nullptr, GoOn);
  ASSERT_TRUE(replayed.ok()) << replayed.status();
  EXPECT_FALSE(replayed->difference);
  EXPECT_EQ(replayed->digests, 2u);  // after 64 and 100
  EXPECT_TRUE(AreEqual(replayed->values, values));
  const WhatIf what_if{.contract = Contract{.kind = Contract::Kind::kBuffered, .buffer = 2}};
  EXPECT_TRUE(ReplayShard(result, result.shards().at(0), what_if, nullptr, GoOn).ok());
}

// Adjusted rates and momentum, sums of several pushes, discarded pushes.
TEST(Replay, IsBitEqualWithEverythingThatARecordMayHold) {
  TestJob job = JobOf({.kind = Contract::Kind::kBuffered, .buffer = 2, .staleness_cut = 8},
                      proto::Optimizer::MOMENTUM);
  job.spec().mutable_optimizer()->set_momentum(0.9);
  job.spec().mutable_asynchrony()->set_automatic_momentum(true);
  job.spec().mutable_asynchrony()->set_delay_compensation(0.5);
  const RecordedRun run(job, 200);
  const ShardHistory& history = run.result->shards().at(0);
  const auto has = [&](const auto& property) {
    return std::any_of(history.updates.begin(), history.updates.end(), property);
  };
  EXPECT_TRUE(has([](const RecordedUpdate& u) { return u.record.momentum.has_value(); }));
  EXPECT_TRUE(has([](const RecordedUpdate& u) { return u.record.pushes.size() > 1; }));
  EXPECT_TRUE(has([](const RecordedUpdate& u) { return !u.record.is_update; }));
  const auto replayed = ReplayShard(*run.result, history, {}, nullptr, GoOn);
  ASSERT_TRUE(replayed.ok()) << replayed.status();
  EXPECT_FALSE(replayed->difference);
  EXPECT_TRUE(AreEqual(replayed->values, run.values));
}

// Of Adam: the values alone, or with the state of its two slots.
enum class Gives { kValues, kState };

struct GivenRun {
  explicit GivenRun(Gives gives) : recording(Waiting()) {
    TestJob job = Waiting();
    Random random(1);
    Message values = recording.driver().ClientPush(1, RandomGradient(random));
    proto::PushRequest& push = *values.envelope.mutable_push_request();
    push.set_initialization_epoch(job.view.epoch());
    if (gives == Gives::kState) {
      push.mutable_initial_state()->set_updates(1000);
      push.mutable_initial_state()->set_samples(9000);
      values.frames.push_back(ShardDriver::Floats(RandomGradient(random)));
      values.frames.push_back(ShardDriver::Floats(std::vector<float>(kElements, 0.25f)));
    }
    recording.Deliver(values);
    job.view.mutable_tables(0)->clear_initialization();
    job.view.set_epoch(job.view.epoch() + 1);
    recording.driver().AdoptView(job);
    for (uint64_t step = 1; step <= 70; ++step) {
      recording.Deliver(recording.driver().GroupPush(1, step, RandomGradient(random)));
    }
    trained = ShardDriver::Floats(recording.driver().Values());
    recorded.emplace(recording.End());
  }
  static TestJob Waiting() {
    TestJob job = JobOf(kAsync, proto::Optimizer::ADAM);
    job.spec().mutable_initializer()->set_kind(proto::Initializer::GIVEN);
    job.view.mutable_tables(0)->mutable_initialization()->set_node(kTestClient.value());
    job.view.mutable_tables(0)->mutable_initialization()->set_epoch(job.view.epoch());
    return job;
  }
  const ShardHistory& history() const { return recorded->shards().at(0); }

  RecordingDriver recording;
  Buffer trained;
  std::optional<Recording> recorded;
};

TEST(Replay, BeginsWithWhatANodeGave) {
  for (const Gives gives : {Gives::kValues, Gives::kState}) {
    const GivenRun run(gives);
    const auto replayed = ReplayShard(*run.recorded, run.history(), {}, nullptr, GoOn);
    ASSERT_TRUE(replayed.ok()) << replayed.status();
    EXPECT_FALSE(replayed->difference);
    EXPECT_EQ(replayed->digests, 2u);  // after 64 and 71
    EXPECT_EQ(replayed->updates, gives == Gives::kState ? 1070u : 70u);
    EXPECT_TRUE(AreEqual(replayed->values, run.trained));
    EXPECT_EQ(run.history().updates.back().version, replayed->updates);
    const auto buffered =
        ReplayShard(*run.recorded, run.history(), {.contract = kAsync}, nullptr, GoOn);
    ASSERT_TRUE(buffered.ok()) << buffered.status();
    EXPECT_TRUE(AreEqual(buffered->values, run.trained));
  }
}

TEST(Replay, AnotherOptimizerCannotTakeTheStateThatANodeGave) {
  const WhatIf sgd{.optimizer = OptimizerConfig()};
  const GivenRun values(Gives::kValues);
  EXPECT_TRUE(ReplayShard(*values.recorded, values.history(), sgd, nullptr, GoOn).ok());
  const GivenRun state(Gives::kState);
  const auto refused = ReplayShard(*state.recorded, state.history(), sgd, nullptr, GoOn);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_THAT(refused.status().message(), HasSubstr("that a program gave"));
}

TEST(Replay, NamesTheSpanInWhichTheOrderDiffers) {
  const RecordedRun run(JobOf(kAsync, proto::Optimizer::SGD), 200);
  ShardHistory history = run.result->shards().at(0);
  // Two neighbors of different groups change places, with their gradients.
  size_t first = 69;
  while (history.updates[first].record.pushes[0].group ==
         history.updates[first + 1].record.pushes[0].group) {
    ++first;
  }
  RecordedUpdate& a = history.updates[first];
  RecordedUpdate& b = history.updates[first + 1];
  std::swap(a.record, b.record);
  std::swap(a.payload_offset, b.payload_offset);
  const auto replayed = ReplayShard(*run.result, history, {}, nullptr, GoOn);
  ASSERT_TRUE(replayed.ok()) << replayed.status();
  ASSERT_TRUE(replayed->difference);
  EXPECT_EQ(replayed->difference->after, 64u);
  EXPECT_EQ(replayed->difference->at, 128u);
  EXPECT_EQ(replayed->digests, 1u);
}

TEST(Replay, RefusesARecordingWithoutGradientsAndStopsWhenAsked) {
  RecordingDriver recording(JobOf(kAsync, proto::Optimizer::SGD), {.gradients = false});
  Random random(1);
  recording.Deliver(recording.driver().GroupPush(1, 1, RandomGradient(random)));
  const Recording recorded = recording.End();
  const auto replayed = ReplayShard(recorded, recorded.shards().at(0), {}, nullptr, GoOn);
  EXPECT_EQ(replayed.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(replayed.status().message()),
              HasSubstr("table 'weights' shard 0 record 1: the gradients were not recorded"));
  const RecordedRun run(JobOf(kAsync, proto::Optimizer::SGD), 2);
  ShardHistory loaded = run.result->shards().at(0);
  loaded.table.mutable_shards(0)->set_origin("snapshot-000017-e42");
  const absl::Status without = ReplayShard(*run.result, loaded, {}, nullptr, GoOn).status();
  EXPECT_EQ(without.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(without.message()),
              HasSubstr("began from snapshot-000017-e42; pass the folder of snapshots"));
  ShardHistory late = run.result->shards().at(0);
  late.begin = 3;
  EXPECT_THAT(std::string(ReplayShard(*run.result, late, {}, nullptr, GoOn).status().message()),
              HasSubstr("records from 1 to 3 were not recorded"));
  EXPECT_EQ(ReplayShard(*run.result, run.result->shards().at(0), {}, nullptr,
                        [] { return absl::CancelledError("interrupted"); })
                .status()
                .code(),
            absl::StatusCode::kCancelled);
}

// What a server makes of the pushes of `run` under another definition of the table.
Buffer ValuesUnder(const TestJob& job, const RecordedRun& run) {
  ShardDriver driver(job);
  uint64_t step[] = {0, 0};
  for (const RecordedUpdate& update : run.result->shards().at(0).updates) {
    const AppliedPush& push = update.record.pushes.at(0);
    const Buffer frame = run.result->ReadGradient(update).value();
    const auto gradient = frame.As<float>();
    driver.Deliver(driver.GroupPush(static_cast<uint32_t>(push.group), ++step[push.group - 1],
                                    {gradient.begin(), gradient.end()}, push.samples));
  }
  return ShardDriver::Floats(driver.Values());
}

TEST(Replay, WhatIfIsWhatAServerWouldHaveMade) {
  const RecordedRun run(JobOf(kAsync, proto::Optimizer::SGD), 150);
  const ShardHistory& history = run.result->shards().at(0);
  TestJob adam = JobOf(kAsync, proto::Optimizer::ADAM);
  adam.spec().mutable_learning_rate()->set_base(0.5);
  const auto replayed =
      ReplayShard(*run.result, history,
                  {.optimizer = OptimizerConfig{.kind = OptimizerKind::kAdam}, .base_rate = 0.5},
                  nullptr, GoOn);
  ASSERT_TRUE(replayed.ok()) << replayed.status();
  EXPECT_EQ(replayed->digests, 0u);
  EXPECT_EQ(replayed->updates, 150u);
  EXPECT_TRUE(AreEqual(replayed->values, ValuesUnder(adam, run)));
  EXPECT_FALSE(AreEqual(replayed->values, run.values));
}

TEST(Replay, TheSameArrivalsUnderAnotherGate) {
  const RecordedRun run(JobOf(kAsync, proto::Optimizer::SGD), 151);
  const ShardHistory& history = run.result->shards().at(0);
  const Contract buffered{.kind = Contract::Kind::kBuffered, .buffer = 3};
  const auto replayed = ReplayShard(*run.result, history, {.contract = buffered}, nullptr, GoOn);
  ASSERT_TRUE(replayed.ok()) << replayed.status();
  // The last one is of a single push.
  EXPECT_EQ(replayed->updates, 51u);
  const auto unchanged = ReplayShard(*run.result, history, {.contract = kAsync}, nullptr, GoOn);
  ASSERT_TRUE(unchanged.ok()) << unchanged.status();
  EXPECT_TRUE(AreEqual(unchanged->values, run.values));
  const RecordedRun even(JobOf(kAsync, proto::Optimizer::SGD), 150);
  const auto under =
      ReplayShard(*even.result, even.result->shards().at(0), {.contract = buffered}, nullptr, GoOn);
  EXPECT_TRUE(AreEqual(under->values, ValuesUnder(JobOf(buffered, proto::Optimizer::SGD), even)));
}

TEST(Replay, RefusesContractsThatWorkersWouldFeel) {
  const RecordedRun run(JobOf(kAsync, proto::Optimizer::SGD), 2);
  const Contract bsp{.kind = Contract::Kind::kBsp};
  const auto status =
      ReplayShard(*run.result, run.result->shards().at(0), {.contract = bsp}, nullptr, GoOn)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("not replayed under bsp"));
  const RecordedRun sums(
      JobOf({.kind = Contract::Kind::kBuffered, .buffer = 2}, proto::Optimizer::SGD), 4);
  EXPECT_THAT(std::string(ReplayShard(*sums.result, sums.result->shards().at(0),
                                      {.contract = kAsync}, nullptr, GoOn)
                              .status()
                              .message()),
              HasSubstr("record 1: it sums several pushes"));
}

}  // namespace
}  // namespace covey::server
