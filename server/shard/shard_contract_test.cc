// SPDX-License-Identifier: Apache-2.0

// How a shard keeps each contract while groups join and leave and contracts are switched.

#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "common/base/random.h"
#include "common/cluster/limits.h"
#include "common/net/testing/frame_lender.h"
#include "common/tensor/codec.h"
#include "common/tensor/wire_format.h"
#include "common/tensor/wire_format_proto.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/shard_fixture.h"

namespace covey::server {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Code = absl::StatusCode;
using Kind = Contract::Kind;

constexpr Contract kBsp{.kind = Kind::kBsp};
constexpr Contract kAsync{.kind = Kind::kAsync};
constexpr Contract kLocal{.kind = Kind::kLocal, .local_steps = 4};
constexpr Contract kQuorum{
    .kind = Kind::kLocal, .local_steps = 4, .quorum = 2, .grace = absl::Milliseconds(200)};

Contract Ssp(uint64_t staleness) { return {.kind = Kind::kSsp, .staleness = staleness}; }
Contract Buffered(uint64_t arrivals, uint64_t cut = 0) {
  return {.kind = Kind::kBuffered, .buffer = arrivals, .staleness_cut = cut};
}

const proto::PushReply& Pushed(const Message& reply) { return reply.envelope.push_reply(); }
Code CodeOf(const Message& reply) { return StatusOf(reply).code(); }
std::string TextOf(const Message& reply) { return std::string(StatusOf(reply).message()); }

Message WithBase(Message push, uint64_t version) {
  push.envelope.mutable_push_request()->set_base_version(version);
  return push;
}

// A pull by a group that has finished `step`.
Message PullAt(ShardDriver& driver, uint64_t step) {
  Message pull = driver.Pull();
  pull.envelope.mutable_pull_request()->mutable_read()->set_step(step);
  return pull;
}

// A sender whose view has a third group, which takes part from step 2 on. The server's view does
// not have it yet.
class LaterView {
 public:
  explicit LaterView(const Contract& contract) : job_(contract, 2), driver_(job_) {
    driver_.Deliver(driver_.GroupPush(1, 1, {1, 1, 1, 1}));
    driver_.Deliver(driver_.GroupPush(2, 1, {1, 1, 1, 1}));
    job_.AddGroup(3, 2);
  }
  ShardDriver& driver() { return driver_; }
  Message Know(Message request) const {
    request.envelope.mutable_header()->set_epoch(job_.view.epoch());
    return request;
  }
  std::vector<Message> Come() {
    driver_.AdoptView(job_);
    return driver_.Sent();
  }

 private:
  TestJob job_;
  ShardDriver driver_;
};

TEST(ShardContract, AnUpdateOfAllGroupsWaitsForTheViewOfItsPushes) {
  LaterView later(kBsp);
  ShardDriver& driver = later.driver();
  ASSERT_THAT(driver.Values(), ElementsAre(-1, -1, -1, -1));
  driver.Deliver(later.Know(driver.GroupPush(1, 2, {1, 1, 1, 1})));
  driver.Deliver(driver.GroupPush(2, 2, {1, 1, 1, 1}));
  EXPECT_THAT(driver.Values(), ElementsAre(-1, -1, -1, -1)) << "group 3 may be waited for";
  later.Come();
  EXPECT_THAT(driver.Values(), ElementsAre(-1, -1, -1, -1)) << "and it is";
  driver.Deliver(driver.GroupPush(3, 2, {4, 4, 4, 4}));
  EXPECT_THAT(driver.Values(), ElementsAre(-3, -3, -3, -3));
}

TEST(ShardContract, AReaderIsJudgedByAViewAsNewAsItsOwn) {
  LaterView later(Ssp(0));
  ShardDriver& driver = later.driver();
  driver.Deliver(driver.GroupPush(1, 2, {1, 1, 1, 1}));
  driver.Deliver(driver.GroupPush(2, 2, {1, 1, 1, 1}));
  EXPECT_EQ(CodeOf(driver.Ask(PullAt(driver, 2))), Code::kOk);
  EXPECT_EQ(CodeOf(driver.Ask(later.Know(driver.Pull()))), Code::kOk) << "any values will do";
  Message impatient = later.Know(PullAt(driver, 2));
  impatient.envelope.mutable_pull_request()->set_deadline_ms(0);
  const Message refused = driver.Ask(impatient);
  EXPECT_EQ(CodeOf(refused), Code::kDeadlineExceeded);
  EXPECT_THAT(TextOf(refused), HasSubstr("has the view of epoch 5 and waits for that of epoch 6"));
  EXPECT_THAT(driver.Deliver(later.Know(PullAt(driver, 2))), IsEmpty());
  EXPECT_THAT(driver.Deliver(later.Know(PullAt(driver, 1))), IsEmpty());
  const std::vector<Message> sent = later.Come();
  ASSERT_THAT(sent, SizeIs(1)) << "step 1 does not need group 3";
  EXPECT_EQ(CodeOf(sent[0]), Code::kOk);
  EXPECT_THAT(driver.Deliver(driver.GroupPush(3, 2, {1, 1, 1, 1})), SizeIs(2));
}

// Plain SGD of rate 1 on the changes gives the mean of the groups' final values.
TEST(ShardContract, LocalWithRateOneAveragesParametersBySamples) {
  TestJob job(kLocal, 2);
  job.spec().mutable_initializer()->set_kind(proto::Initializer::CONSTANT);
  job.spec().mutable_initializer()->set_a(10);
  ShardDriver driver(job);
  // Final values 8 after 1 sample, and 4 after 3: samples x (start - end).
  EXPECT_THAT(driver.Deliver(ShardDriver::WithValues(driver.GroupPush(1, 1, {2, 2, 2, 2}, 1), 1)),
              IsEmpty());
  const auto replies =
      driver.Deliver(ShardDriver::WithValues(driver.GroupPush(2, 1, {18, 18, 18, 18}, 3), 1));
  ASSERT_THAT(replies, SizeIs(2));
  for (const Message& reply : replies) {
    EXPECT_THAT(ShardDriver::ValuesIn(reply), ElementsAre(5, 5, 5, 5));
    EXPECT_EQ(Pushed(reply).applied_version(), 1u);
    EXPECT_EQ(Pushed(reply).state().samples(), 4u);
  }
}

// Averaging parameters after each step of plain SGD is the same as averaging gradients.
TEST(ShardContract, LocalOfOneStepIsSynchronousSgd) {
  constexpr float kRate = 0.3f;
  TestJob gradients(kBsp, 2);
  gradients.spec().mutable_learning_rate()->set_base(kRate);
  ShardDriver bsp(gradients);
  ShardDriver local(TestJob({.kind = Kind::kLocal, .local_steps = 1}, 2));
  Random random(5);
  for (uint64_t step = 1; step <= 20; ++step) {
    for (uint32_t group = 1; group <= 2; ++group) {
      std::vector<float> gradient;
      std::vector<float> change;
      for (int i = 0; i < 4; ++i) {
        gradient.push_back(static_cast<float>(random.Uniform() - 0.5));
        // A group of n samples moves by rate x sum / n, and pushes n times that.
        change.push_back(kRate * gradient.back());
      }
      ASSERT_EQ(CodeOf(bsp.Ask(bsp.GroupPush(group, step, gradient, group))), Code::kOk);
      ASSERT_EQ(CodeOf(local.Ask(local.GroupPush(group, step, change, group))), Code::kOk);
    }
  }
  const std::vector<float> expected = bsp.Values();
  const std::vector<float> values = local.Values();
  for (int i = 0; i < 4; ++i) EXPECT_THAT(values[i], FloatNear(expected[i], 1e-6f));
}

TEST(ShardContract, ALateGroupGetsTheRoundAndCountsInTheNext) {
  ShardDriver driver(TestJob(kQuorum, 3));
  EXPECT_THAT(driver.Deliver(ShardDriver::WithValues(driver.GroupPush(1, 1, {3, 3, 3, 3}), 1)),
              IsEmpty());
  EXPECT_THAT(driver.Deliver(ShardDriver::WithValues(driver.GroupPush(2, 1, {5, 5, 5, 5}), 1)),
              IsEmpty());
  driver.Pass(absl::Milliseconds(199));
  EXPECT_THAT(driver.Wake(), IsEmpty());
  EXPECT_EQ(driver.actor().NextWake(), driver.now() + absl::Milliseconds(1));
  driver.Pass(absl::Milliseconds(1));
  EXPECT_THAT(driver.Wake(), SizeIs(2));
  EXPECT_THAT(driver.Values(), ElementsAre(-4, -4, -4, -4));

  const Message late = ShardDriver::WithValues(driver.GroupPush(3, 1, {12, 12, 12, 12}, 4), 1);
  const Message reply = driver.Ask(late);
  EXPECT_EQ(Pushed(reply).applied_version(), 0u);
  EXPECT_THAT(ShardDriver::ValuesIn(reply), ElementsAre(-4, -4, -4, -4));
  driver.Ask(driver.GroupPush(1, 2, {0, 0, 0, 0}));
  driver.Ask(driver.GroupPush(2, 2, {0, 0, 0, 0}));
  driver.Pass(absl::Milliseconds(200));
  driver.Wake();
  EXPECT_THAT(driver.Values(), ElementsAre(-6, -6, -6, -6));
  EXPECT_EQ(Pushed(driver.Ask(late)).applied_version(), 2u);
}

TEST(ShardContract, LocalGoesOnWithoutABrokenGroup) {
  TestJob job(kLocal, 2);
  ShardDriver driver(job);
  driver.Deliver(ShardDriver::WithValues(driver.GroupPush(1, 1, {1, 1, 1, 1}), 1));
  job.EndGroup(2, proto::Group::BROKEN);
  driver.AdoptView(job);
  EXPECT_THAT(driver.Sent(), SizeIs(1));
}

// Under every contract, a group that joins at step 5 neither delays earlier steps nor misses any
// later one.
TEST(ShardContract, AGroupThatJoinsIsWaitedForFromItsFirstStep) {
  for (const Contract& contract : {kBsp, Ssp(0), Contract{.kind = Kind::kLocal}}) {
    TestJob job(contract, 1);
    ShardDriver driver(job);
    for (uint64_t step = 1; step <= 3; ++step) driver.Ask(driver.GroupPush(1, step, {1, 1, 1, 1}));
    job.AddGroup(2, 5);
    driver.AdoptView(job);
    EXPECT_EQ(CodeOf(driver.Ask(ShardDriver::WithValues(driver.GroupPush(1, 4, {1, 1, 1, 1}), 4))),
              Code::kOk);
    EXPECT_EQ(CodeOf(driver.Ask(PullAt(driver, 4))), Code::kOk) << "the joining group's own read";
    EXPECT_THAT(driver.Deliver(ShardDriver::WithValues(driver.GroupPush(1, 5, {1, 1, 1, 1}), 5)),
                IsEmpty())
        << ContractName(contract);
    EXPECT_THAT(driver.Deliver(ShardDriver::WithValues(driver.GroupPush(2, 5, {1, 1, 1, 1}), 5)),
                SizeIs(2))
        << ContractName(contract);
  }
  for (const Contract& contract : {kAsync, Buffered(1)}) {
    TestJob job(contract, 1);
    ShardDriver driver(job);
    job.AddGroup(2, 5);
    driver.AdoptView(job);
    EXPECT_EQ(CodeOf(driver.Ask(ShardDriver::WithValues(driver.GroupPush(1, 9, {1, 1, 1, 1}), 9))),
              Code::kOk);
  }
}

// The group planned to join at step 3, but the others were faster. The members change between two
// steps; the last pushes of the old generation may arrive after the view.
TEST(ShardContract, AnOlderGenerationMayFinishItsStep) {
  TestJob job(kAsync, 1);
  ShardDriver driver(job);
  const auto push = [&driver](uint64_t step, uint64_t generation) {
    Message message = driver.GroupPush(1, step, {1, 1, 1, 1}, 1);
    proto::PushRequest& request = *message.envelope.mutable_push_request();
    request.set_group_generation(generation);
    request.mutable_id()->set_producer_incarnation(generation);
    return driver.Ask(message);
  };
  job.view.mutable_groups(0)->set_generation(2);
  job.view.set_epoch(job.view.epoch() + 1);
  driver.AdoptView(job);
  EXPECT_EQ(CodeOf(push(1, 1)), Code::kOk);
  EXPECT_EQ(CodeOf(push(2, 2)), Code::kOk);
  EXPECT_EQ(CodeOf(push(3, 1)), Code::kAborted);
  EXPECT_TRUE(Pushed(push(1, 2)).duplicate());
}

TEST(ShardContract, AGroupThatJoinsLateCatchesUpUnderBsp) {
  TestJob job(kBsp, 1);
  ShardDriver driver(job);
  for (uint64_t step = 1; step <= 4; ++step) driver.Ask(driver.GroupPush(1, step, {1, 1, 1, 1}));
  job.AddGroup(2, 3);
  driver.AdoptView(job);
  EXPECT_THAT(driver.Deliver(ShardDriver::WithValues(driver.GroupPush(1, 5, {1, 1, 1, 1}), 5)),
              IsEmpty());
  for (uint64_t step = 3; step <= 4; ++step) {
    const Message reply =
        driver.Ask(ShardDriver::WithValues(driver.GroupPush(2, step, {1, 1, 1, 1}), step));
    EXPECT_EQ(Pushed(reply).applied_version(), step + 2);
  }
  EXPECT_THAT(driver.Deliver(ShardDriver::WithValues(driver.GroupPush(2, 5, {3, 3, 3, 3}), 5)),
              SizeIs(2));
  EXPECT_THAT(driver.Values(), ElementsAre(-8, -8, -8, -8));
}

TEST(ShardContract, CutsPushesThatAreTooStale) {
  ShardDriver driver(TestJob(Buffered(1, 2), 2));
  for (uint64_t step = 1; step <= 3; ++step) driver.Ask(driver.GroupPush(1, step, {1, 1, 1, 1}));
  const Message stale =
      ShardDriver::WithValues(WithBase(driver.GroupPush(2, 1, {std::nanf(""), 9, 9, 9}, 5), 1), 1);
  const Message reply = driver.Ask(stale);
  EXPECT_EQ(CodeOf(reply), Code::kOk);
  EXPECT_TRUE(Pushed(reply).discarded());
  EXPECT_FALSE(Pushed(reply).duplicate());
  EXPECT_EQ(Pushed(reply).applied_version(), 0u);
  EXPECT_EQ(Pushed(reply).state().version(), 3u);
  EXPECT_EQ(Pushed(reply).state().samples(), 3u);
  ASSERT_EQ(Pushed(reply).state().clocks_size(), 2);
  EXPECT_EQ(Pushed(reply).state().clocks(1).step(), 1u);
  EXPECT_THAT(ShardDriver::ValuesIn(reply), ElementsAre(-3, -3, -3, -3));
  const Message again = driver.Ask(stale);
  EXPECT_TRUE(Pushed(again).duplicate());
  EXPECT_TRUE(Pushed(again).discarded());
  EXPECT_EQ(driver.actor().counters().discarded, 1u);
  // An age of one update is below the cut.
  const Message young = driver.Ask(WithBase(driver.GroupPush(2, 2, {1, 1, 1, 1}), 2));
  EXPECT_FALSE(Pushed(young).discarded());
  EXPECT_EQ(Pushed(young).applied_version(), 4u);
}

// Under bsp no group waits for a step whose push was cut.
TEST(ShardContract, StepsThatWereCutArePastAfterASwitch) {
  TestJob job(Buffered(1, 1), 2);
  ShardDriver driver(job);
  for (uint64_t step = 1; step <= 3; ++step) driver.Ask(driver.GroupPush(1, step, {1, 1, 1, 1}));
  EXPECT_TRUE(Pushed(driver.Ask(WithBase(driver.GroupPush(2, 4, {1, 1, 1, 1}), 1))).discarded());
  job.SwitchTo(kBsp);
  driver.AdoptView(job);
  EXPECT_EQ(Pushed(driver.Ask(driver.GroupPush(1, 4, {1, 1, 1, 1}))).applied_version(), 4u);
  EXPECT_EQ(Pushed(driver.Ask(driver.GroupPush(1, 5, {1, 1, 1, 1}))).applied_version(), 0u);
  EXPECT_EQ(Pushed(driver.Ask(driver.GroupPush(2, 5, {1, 1, 1, 1}))).applied_version(), 5u);
}

// The clock of a group does not pass an earlier push that is still held.
TEST(ShardContract, ACutPushDoesNotMoveTheClockPastAHeldOne) {
  ShardDriver driver(TestJob(Buffered(2, 1), 2));
  driver.Ask(driver.GroupPush(1, 1, {1, 1, 1, 1}));
  driver.Ask(driver.GroupPush(2, 1, {1, 1, 1, 1}));
  driver.Ask(driver.GroupPush(1, 2, {1, 1, 1, 1}));
  driver.Ask(driver.GroupPush(1, 3, {1, 1, 1, 1}));
  driver.Ask(driver.GroupPush(1, 4, {1, 1, 1, 1}));  // held, at version 2
  const Message cut = driver.Ask(WithBase(driver.GroupPush(1, 5, {1, 1, 1, 1}), 1));
  EXPECT_TRUE(Pushed(cut).discarded());
  EXPECT_EQ(Pushed(cut).state().clocks(0).step(), 3u);
}

TEST(ShardContract, ReadersMayDemandMoreUnderEveryContract) {
  for (const Contract& contract : {kBsp, Ssp(3), kAsync, Buffered(1), kLocal}) {
    ShardDriver driver(TestJob(contract, 2));
    driver.Ask(driver.GroupPush(1, 1, {1, 1, 1, 1}));
    driver.Ask(driver.GroupPush(2, 1, {1, 1, 1, 1}));
    driver.Pass(absl::Milliseconds(300));
    const uint64_t version = driver.Ask(driver.Pull()).envelope.pull_reply().state().version();
    std::vector<Message> pulls(4, PullAt(driver, 1));
    std::vector<proto::ReadBound*> bounds;
    for (size_t i = 0; i < pulls.size(); ++i) {
      pulls[i].envelope.mutable_header()->set_request_id(500 + i);
      bounds.push_back(pulls[i].envelope.mutable_pull_request()->mutable_read());
    }
    bounds[0]->set_min_version(version + 1);
    bounds[1]->set_max_age_ms(299);
    bounds[2]->set_step(2);
    bounds[2]->set_max_staleness(0);
    EXPECT_THAT(driver.Deliver(pulls[0]), IsEmpty()) << ContractName(contract);
    EXPECT_THAT(driver.Deliver(pulls[1]), IsEmpty()) << ContractName(contract);
    EXPECT_THAT(driver.Deliver(pulls[2]), IsEmpty()) << ContractName(contract);
    EXPECT_EQ(CodeOf(driver.Ask(pulls[3])), Code::kOk) << ContractName(contract);
    // A reader's own bound may also be looser than the contract's.
    bounds[3]->set_step(9);
    bounds[3]->set_max_staleness(8);
    EXPECT_EQ(CodeOf(driver.Ask(pulls[3])), Code::kOk) << ContractName(contract);
    size_t answered = driver.Deliver(driver.GroupPush(1, 2, {1, 1, 1, 1})).size();
    answered += driver.Deliver(driver.GroupPush(2, 2, {1, 1, 1, 1})).size();
    EXPECT_EQ(answered, 5u) << ContractName(contract);
  }
}

TEST(ShardContract, ASwitchAppliesWhatIsHeld) {
  TestJob job(kBsp, 3);
  ShardDriver driver(job);
  const Message held = driver.GroupPush(2, 2, {6, 6, 6, 6});
  driver.Ask(driver.GroupPush(1, 1, {1, 1, 1, 1}));
  driver.Ask(driver.GroupPush(1, 2, {2, 2, 2, 2}));
  driver.Ask(held);
  job.SwitchTo(kAsync);
  driver.AdoptView(job);
  EXPECT_THAT(driver.Values(), ElementsAre(-5, -5, -5, -5));
  const Message again = driver.Ask(held);
  EXPECT_TRUE(Pushed(again).duplicate());
  EXPECT_EQ(Pushed(again).applied_version(), 2u);

  job.SwitchTo(Buffered(3));
  driver.AdoptView(job);
  driver.Ask(driver.GroupPush(3, 1, {8, 8, 8, 8}));
  EXPECT_THAT(driver.Values(), ElementsAre(-5, -5, -5, -5));
  job.SwitchTo(kBsp);
  driver.AdoptView(job);
  EXPECT_THAT(driver.Values(), ElementsAre(-13, -13, -13, -13));
  // The slowest group catches up, then all are in step again.
  EXPECT_EQ(Pushed(driver.Ask(driver.GroupPush(3, 2, {1, 1, 1, 1}))).applied_version(), 4u);
  driver.Ask(driver.GroupPush(3, 3, {1, 1, 1, 1}));
  driver.Ask(driver.GroupPush(1, 3, {1, 1, 1, 1}));
  EXPECT_EQ(Pushed(driver.Ask(driver.GroupPush(2, 3, {1, 1, 1, 1}))).applied_version(), 5u);
}

TEST(ShardContract, WaitingReadersAreBoundByTheNewContract) {
  TestJob job(kBsp, 2);
  ShardDriver driver(job);
  EXPECT_THAT(driver.Deliver(ShardDriver::WithValues(driver.GroupPush(1, 1, {1, 1, 1, 1}), 1)),
              IsEmpty());
  job.SwitchTo(Buffered(0));
  driver.AdoptView(job);
  const std::vector<Message> replies = driver.Sent();
  ASSERT_THAT(replies, SizeIs(1));
  EXPECT_EQ(Pushed(replies[0]).applied_version(), 1u);
  EXPECT_THAT(ShardDriver::ValuesIn(replies[0]), ElementsAre(-1, -1, -1, -1));

  Message demanding = PullAt(driver, 1);
  demanding.envelope.mutable_pull_request()->mutable_read()->set_min_version(2);
  EXPECT_THAT(driver.Deliver(demanding), IsEmpty());
  job.SwitchTo(Ssp(0));
  driver.AdoptView(job);
  EXPECT_THAT(driver.Deliver(driver.GroupPush(1, 2, {1, 1, 1, 1})), SizeIs(1));
  EXPECT_THAT(driver.Deliver(driver.GroupPush(2, 1, {1, 1, 1, 1})), SizeIs(2));
}

TEST(ShardContract, ASwitchKeepsTheOptimizersState) {
  const auto run = [](const std::vector<Contract>& contracts) {
    TestJob job(contracts[0], 1);
    job.spec().mutable_optimizer()->set_kind(proto::Optimizer::ADAM);
    job.spec().mutable_learning_rate()->set_base(0.1);
    ShardDriver driver(job);
    Random random(3);
    for (uint64_t step = 1; step <= 12; ++step) {
      std::vector<float> gradient;
      for (int i = 0; i < 4; ++i) gradient.push_back(static_cast<float>(random.Uniform() - 0.5));
      EXPECT_EQ(CodeOf(driver.Ask(driver.GroupPush(1, step, gradient))), Code::kOk);
      job.SwitchTo(contracts[step % contracts.size()]);
      driver.AdoptView(job);
    }
    return driver.Values();
  };
  // With one group and one arrival per update, all contracts make the same updates.
  EXPECT_EQ(run({kAsync}), run({kBsp, Ssp(1), Buffered(1), kAsync}));
}

TEST(ShardContract, LocalIsNeitherLeftNorEntered) {
  TestJob job(kAsync, 2);
  ShardDriver driver(job);
  driver.Values();  // opens the shard
  job.SwitchTo(kLocal);
  driver.AdoptView(job);
  EXPECT_EQ(Pushed(driver.Ask(driver.GroupPush(1, 1, {1, 1, 1, 1}))).applied_version(), 1u);
  TestJob rounds(kLocal, 2);
  ShardDriver local(rounds);
  local.Ask(local.GroupPush(1, 1, {1, 1, 1, 1}));
  rounds.SwitchTo(kAsync);
  local.AdoptView(rounds);
  EXPECT_EQ(Pushed(local.Ask(local.GroupPush(1, 2, {1, 1, 1, 1}))).applied_version(), 0u);
  // Another quorum is allowed, and may end a round at once.
  rounds.SwitchTo({.kind = Kind::kLocal, .local_steps = 4, .quorum = 1});
  local.AdoptView(rounds);
  EXPECT_THAT(local.Values(), ElementsAre(-2, -2, -2, -2));
}

// Random pushes by random groups under random contracts, with lost replies: each acknowledged push
// counts once.
TEST(ShardContract, NoSwitchLosesOrRepeatsAPush) {
  const std::vector<Contract> contracts = {kBsp, Ssp(1), kAsync, Buffered(3), Buffered(0)};
  std::map<std::pair<Kind, Kind>, int> switches;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    Contract contract = contracts[random.Below(contracts.size())];
    TestJob job(contract, 3);
    ShardDriver driver(job);
    std::vector<uint64_t> steps = {0, 0, 0, 0};
    std::vector<uint32_t> live = {1, 2, 3};
    std::vector<Message> acknowledged;
    uint64_t samples = 0;
    uint64_t version = 0;
    for (int i = 0; i < 150; ++i) {
      const uint32_t group = live[random.Below(live.size())];
      const uint64_t weight = 1 + random.Below(5);
      const Message push = driver.GroupPush(group, steps[group] + 1, {1, 1, 1, 1}, weight);
      const Message reply = driver.Ask(push);
      if (CodeOf(reply) == Code::kOk) {
        ++steps[group];
        samples += weight;
        acknowledged.push_back(push);
        EXPECT_FALSE(Pushed(reply).duplicate());
        ASSERT_GE(Pushed(reply).state().version(), version);
        version = Pushed(reply).state().version();
      } else {
        EXPECT_EQ(CodeOf(reply), Code::kResourceExhausted) << TextOf(reply);
      }
      if (random.Chance(0.1)) {
        const Message again = driver.Ask(acknowledged[random.Below(acknowledged.size())]);
        EXPECT_TRUE(Pushed(again).duplicate());
      }
      if (random.Chance(0.1)) {
        const Contract next = contracts[random.Below(contracts.size())];
        ++switches[{contract.kind, next.kind}];
        contract = next;
        job.SwitchTo(contract);
        driver.AdoptView(job);
      }
      if (live.size() > 1 && random.Chance(0.01)) {
        std::erase(live, group);
        job.EndGroup(group, proto::Group::DONE);
        driver.AdoptView(job);
      }
      if (steps.size() < 6 && random.Chance(0.02)) {
        const uint32_t joined = static_cast<uint32_t>(steps.size());
        const uint64_t first = 1 + random.Below(steps[live[0]] + 3);
        job.AddGroup(joined, first);
        driver.AdoptView(job);
        live.push_back(joined);
        steps.push_back(first - 1);
      }
    }
    for (uint32_t group : live) job.EndGroup(group, proto::Group::DONE);
    driver.AdoptView(job);
    const Message pull = driver.Ask(driver.Pull());
    EXPECT_EQ(pull.envelope.pull_reply().state().samples(), samples) << "seed " << seed;
    for (const Message& push : acknowledged) {
      const Message again = driver.Ask(push);
      ASSERT_TRUE(Pushed(again).duplicate()) << "seed " << seed;
      ASSERT_GT(Pushed(again).applied_version(), 0u) << "seed " << seed;
    }
  }
  EXPECT_THAT(switches, SizeIs(16)) << "not every pair of contracts was tried";
}

TEST(ShardContract, TakesGradientsInEveryWireFormat) {
  for (const WireFormat format : kWireFormats) {
    for (const Contract& contract : {kAsync, kBsp, Buffered(2)}) {
      ShardDriver driver(TestJob(contract, 2, 300));
      std::vector<float> sum(300, 0.0f);
      for (uint32_t group = 1; group <= 2; ++group) {
        std::vector<float> gradient;
        for (int i = 0; i < 300; ++i) gradient.push_back(static_cast<float>(group) + 0.01f * i);
        std::vector<uint8_t> bytes(EncodedBytes(format, 300));
        Encode(format, gradient, bytes);
        DecodeAndAdd(format, bytes, sum);
        Message push = driver.GroupPush(group, 1, {});
        push.envelope.mutable_push_request()->set_format(static_cast<proto::WireFormat>(format));
        push.frames[0] = Buffer::CopyOf(bytes);
        ASSERT_EQ(CodeOf(driver.Ask(push)), Code::kOk) << WireFormatName(format);
      }
      const float updates = contract.kind == Kind::kAsync ? 1.0f : 2.0f;
      const std::vector<float> values = driver.Values();
      for (int i = 0; i < 300; ++i) ASSERT_THAT(values[i], FloatNear(-sum[i] / updates, 1e-5f));
    }
  }
}

TEST(ShardContract, NoPushKeepsTheMemoryOfItsSender) {
  FrameLender lender;
  for (const WireFormat format : {WireFormat::kFloat32, WireFormat::kFloat16}) {
    for (const Contract& contract :
         {kAsync, Ssp(2), kBsp, Buffered(2), Contract{.kind = Kind::kLocal, .local_steps = 1}}) {
      ShardDriver driver(TestJob(contract, 2, 4));
      for (uint32_t group = 1; group <= 2; ++group) {
        std::vector<uint8_t> bytes(EncodedBytes(format, 4));
        Encode(format, std::vector<float>(4, static_cast<float>(group)), bytes);
        Message push = driver.GroupPush(group, 1, {});
        push.envelope.mutable_push_request()->set_format(static_cast<proto::WireFormat>(format));
        push.frames[0] = Buffer::CopyOf(bytes);
        ASSERT_EQ(CodeOf(driver.Ask(lender.Lend(push))), Code::kOk);
        EXPECT_EQ(lender.out(), 0u) << WireFormatName(format);
      }
      const float updates = contract.AppliesOnArrival() ? 1 : 2;
      EXPECT_THAT(driver.Values()[0], FloatNear(-3 / updates, 1e-5f));
    }
  }
}

TEST(ShardContract, KeepsTheMemoryOfASenderWhenSoPlanted) {
  const BugInPlace bug(PlantedBug::kHoldLentGradients);
  FrameLender lender;
  ShardDriver driver(TestJob(Buffered(2), 2));
  driver.Ask(lender.Lend(driver.GroupPush(1, 1, {1, 1, 1, 1})));
  EXPECT_EQ(lender.out(), 1u);
  driver.Ask(lender.Lend(driver.GroupPush(2, 1, {1, 1, 1, 1})));
  EXPECT_EQ(lender.out(), 0u);
}

TEST(ShardContract, RefusesGradientsWhoseBytesDoNotFitTheirFormat) {
  ShardDriver driver(TestJob(kAsync, 0));
  Message push = driver.ClientPush(1, {1, 1, 1, 1});
  push.envelope.mutable_push_request()->set_format(proto::WIRE_FLOAT16);
  EXPECT_THAT(TextOf(driver.Ask(push)), HasSubstr("8 bytes as float16"));
  push.envelope.mutable_push_request()->set_format(static_cast<proto::WireFormat>(9));
  EXPECT_THAT(TextOf(driver.Ask(push)), HasSubstr("wire format 9"));
  EXPECT_EQ(driver.actor().counters().malformed, 2u);
  // Values beyond the range of a format arrive as infinity, and are refused.
  const std::vector<float> large = {1e6f, 0, 0, 0};
  std::vector<uint8_t> bytes(8);
  Encode(WireFormat::kFloat16, large, bytes);
  push.envelope.mutable_push_request()->set_format(proto::WIRE_FLOAT16);
  push.frames[0] = Buffer::CopyOf(bytes);
  EXPECT_THAT(TextOf(driver.Ask(push)), HasSubstr("inf at element 0"));
  EXPECT_THAT(driver.Values(), ElementsAre(0, 0, 0, 0));
}

TEST(ShardContract, RefusesWhatIsNotFiniteInEachWireFormat) {
  ShardDriver driver(TestJob(kAsync, 0));
  uint64_t refused = 0;
  for (const WireFormat format : kWireFormats) {
    for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
      Message push = driver.ClientPush(1, {1, 1, 1, 1});
      push.envelope.mutable_push_request()->set_format(ToProto(format));
      std::vector<uint8_t> bytes(EncodedBytes(format, 4));
      Encode(format, std::vector<float>{1, 1, bad, 1}, bytes);
      push.frames[0] = Buffer::CopyOf(bytes);
      EXPECT_EQ(CodeOf(driver.Ask(push)), Code::kInvalidArgument) << WireFormatName(format);
      EXPECT_EQ(driver.actor().counters().non_finite, ++refused) << WireFormatName(format);
      EXPECT_THAT(driver.Values(), ElementsAre(0, 0, 0, 0)) << WireFormatName(format);
    }
  }
}

}  // namespace
}  // namespace covey::server
