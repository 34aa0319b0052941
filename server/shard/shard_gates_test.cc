// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "common/base/random.h"
#include "common/cluster/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/shard_fixture.h"

// How bsp, ssp and buffered treat pushes and readers, and replies that wait.

namespace covey::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Code = absl::StatusCode;

constexpr Contract kBsp{.kind = Contract::Kind::kBsp};
constexpr Contract kAsync{.kind = Contract::Kind::kAsync};

Contract Ssp(uint64_t staleness) { return {.kind = Contract::Kind::kSsp, .staleness = staleness}; }
Contract Buffered(uint64_t arrivals) {
  return {.kind = Contract::Kind::kBuffered, .buffer = arrivals};
}

Code CodeOf(const Message& reply) { return StatusOf(reply).code(); }
std::string TextOf(const Message& reply) { return std::string(StatusOf(reply).message()); }
const proto::PushReply& Pushed(const Message& reply) { return reply.envelope.push_reply(); }

TEST(ShardGates, BspAppliesOneUpdatePerStepAndAnswersAfterIt) {
  ShardDriver driver(TestJob(kBsp, 2));
  EXPECT_TRUE(
      driver.Deliver(ShardDriver::WithValues(driver.GroupPush(2, 1, {2, 2, 2, 2}, 1), 1)).empty());
  EXPECT_THAT(driver.Values(), ElementsAre(0, 0, 0, 0));
  const std::vector<Message> replies =
      driver.Deliver(ShardDriver::WithValues(driver.GroupPush(1, 1, {4, 4, 4, 4}, 2), 1));
  ASSERT_EQ(replies.size(), 2u);
  for (const Message& reply : replies) {
    EXPECT_EQ(CodeOf(reply), Code::kOk);
    EXPECT_EQ(Pushed(reply).applied_version(), 1u);
    EXPECT_THAT(ShardDriver::ValuesIn(reply), ElementsAre(-2, -2, -2, -2));
    ASSERT_EQ(Pushed(reply).state().clocks_size(), 2);
    EXPECT_EQ(Pushed(reply).state().clocks(0).step(), 1u);
    EXPECT_EQ(Pushed(reply).state().clocks(1).step(), 1u);
  }
}

// The shard was re-initialized when groups 1 and 2 were at steps 6 and 8; group 3 came later.
TEST(ShardGates, AfterALossSspWaitsForAGroupFromItsNextPushOn) {
  TestJob job(Ssp(1), 3);
  for (const uint32_t group : {1, 2}) {
    job.view.mutable_tables(0)->mutable_shards(0)->add_groups_at_loss()->set_group(group);
  }
  job.view.mutable_groups(2)->set_first_step(8);
  ShardDriver driver(job);
  const auto push = [&](uint32_t group, uint64_t step) {
    return driver.Deliver(
        ShardDriver::WithValues(driver.GroupPush(group, step, {1, 1, 1, 1}), step));
  };
  EXPECT_EQ(push(1, 7).size(), 1u) << "group 2 has finished step 8, and will not push it again";
  EXPECT_TRUE(push(2, 9).empty()) << "group 1 is at step 7, group 3 has not begun step 8";
  EXPECT_EQ(push(1, 8).size(), 1u) << "it needs step 7, and group 3 is waited for from step 8 on";
  EXPECT_EQ(push(3, 8).size(), 2u) << "its own reply, and that of group 2";
}

TEST(ShardGates, ARestoredShardWaitsForAGroupFromItsNextPushOn) {
  TestJob job(Ssp(0), 2);
  ShardDriver driver(job);
  driver.Ask(driver.GroupPush(2, 4, {1, 1, 1, 1}));
  const Message push = ShardDriver::WithValues(driver.GroupPush(1, 6, {1, 1, 1, 1}), 6);
  EXPECT_TRUE(driver.Deliver(push).empty());
  proto::CutStep& last = *job.view.mutable_tables(0)->mutable_shards(0)->add_groups_at_loss();
  last.set_group(2);
  last.set_step(4);
  job.view.set_epoch(job.view.epoch() + 1);
  driver.AdoptView(job);
  EXPECT_EQ(driver.Sent().size(), 1u) << "the content is that of group 2's step 4";
  driver.Ask(driver.GroupPush(2, 5, {1, 1, 1, 1}));
  EXPECT_TRUE(
      driver.Deliver(ShardDriver::WithValues(driver.GroupPush(1, 7, {1, 1, 1, 1}), 7)).empty());
}

// Its own push and that of the other group are held in the buffer.
TEST(ShardGates, AfterALossAReaderWaitsForPushesInTheBuffer) {
  TestJob job(Buffered(3), 2);
  for (const uint32_t group : {1, 2}) {
    job.view.mutable_tables(0)->mutable_shards(0)->add_groups_at_loss()->set_group(group);
  }
  ShardDriver driver(job);
  driver.Ask(driver.GroupPush(2, 5, {1, 1, 1, 1}));
  Message push = ShardDriver::WithValues(driver.GroupPush(1, 5, {1, 1, 1, 1}), 5);
  push.envelope.mutable_push_request()->mutable_read()->set_max_staleness(0);
  EXPECT_TRUE(driver.Deliver(push).empty());
  job.view.set_epoch(job.view.epoch() + 1);
  driver.AdoptView(job);
  EXPECT_TRUE(driver.Sent().empty()) << "another view changes nothing";
  const std::vector<Message> replies = driver.Deliver(driver.GroupPush(2, 6, {1, 1, 1, 1}));
  EXPECT_EQ(std::count_if(replies.begin(), replies.end(),
                          [](const Message& reply) { return Pushed(reply).has_values(); }),
            1);
}

TEST(ShardGates, BspHoldsAPlainPushAndTellsItsVersionLater) {
  ShardDriver driver(TestJob(kBsp, 2));
  const Message push = driver.GroupPush(1, 1, {1, 1, 1, 1});
  EXPECT_EQ(Pushed(driver.Ask(push)).applied_version(), 0u);
  const Message again = driver.Ask(push);
  EXPECT_TRUE(Pushed(again).duplicate());
  EXPECT_EQ(Pushed(again).applied_version(), 0u);
  driver.Ask(driver.GroupPush(2, 1, {1, 1, 1, 1}));
  EXPECT_EQ(Pushed(driver.Ask(push)).applied_version(), 1u);
}

TEST(ShardGates, BspRefusesPlainClientsAndGroupsThatRunAway) {
  ShardDriver driver(TestJob(kBsp, 2));
  EXPECT_EQ(CodeOf(driver.Ask(driver.ClientPush(1, {1, 1, 1, 1}))), Code::kInvalidArgument);
  for (uint64_t step = 1; step <= kHeldStepsPerGroupMax; ++step) {
    EXPECT_EQ(CodeOf(driver.Ask(driver.GroupPush(1, step, {1, 1, 1, 1}))), Code::kOk);
  }
  const uint64_t next = kHeldStepsPerGroupMax + 1;
  EXPECT_EQ(CodeOf(driver.Ask(driver.GroupPush(1, next, {1, 1, 1, 1}))), Code::kResourceExhausted);
  driver.Ask(driver.GroupPush(2, 1, {1, 1, 1, 1}));
  EXPECT_EQ(CodeOf(driver.Ask(driver.GroupPush(1, next, {1, 1, 1, 1}))), Code::kOk);
}

TEST(ShardGates, BspGoesOnWithoutABrokenGroup) {
  TestJob job(kBsp, 2);
  ShardDriver driver(job);
  EXPECT_TRUE(
      driver.Deliver(ShardDriver::WithValues(driver.GroupPush(1, 1, {1, 1, 1, 1}), 1)).empty());
  job.EndGroup(2, proto::Group::BROKEN, "worker-1 dead");
  driver.AdoptView(job);
  const std::vector<Message> replies = driver.Sent();
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_THAT(ShardDriver::ValuesIn(replies[0]), ElementsAre(-1, -1, -1, -1));
}

// The bits of a sum depend on its order. Under bsp that is the order of groups, for every order of
// arrival and every way to cut the table.
TEST(ShardGates, BspGivesTheSameBitsForEveryArrivalAndSharding) {
  constexpr uint64_t kElements = 12;
  Random random(4);
  std::vector<std::vector<float>> gradients(3);
  for (std::vector<float>& gradient : gradients) {
    for (uint64_t i = 0; i < kElements; ++i) {
      gradient.push_back(static_cast<float>(random.Uniform() * 1e3 - 500));
    }
  }
  std::vector<float> expected;
  for (const uint32_t shards : {1, 2, 3}) {
    std::vector<uint32_t> order = {1, 2, 3};
    do {
      TestJob job(kBsp, 3, kElements / shards, shards);
      job.spec().mutable_optimizer()->set_kind(proto::Optimizer::MOMENTUM);
      job.spec().mutable_optimizer()->set_momentum(0.9);
      ShardDriver driver(job);
      std::vector<float> values;
      for (uint32_t shard = 0; shard < shards; ++shard) {
        for (uint64_t step = 1; step <= 3; ++step) {
          for (uint32_t group : order) {
            const auto first = gradients[group - 1].begin() + shard * (kElements / shards);
            Message push =
                driver.GroupPush(group, step, {first, first + kElements / shards}, group);
            push.envelope.mutable_push_request()->mutable_id()->set_shard(shard);
            ASSERT_EQ(CodeOf(driver.Ask(push)), Code::kOk);
          }
        }
        const std::vector<float> part = driver.Values(shard);
        values.insert(values.end(), part.begin(), part.end());
      }
      if (expected.empty()) expected = values;
      ASSERT_EQ(values, expected) << shards << " shards";
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST(ShardGates, SspAppliesOnArrivalAndGatesReaders) {
  ShardDriver driver(TestJob(Ssp(1), 2));
  for (uint64_t step = 1; step <= 2; ++step) {
    const Message push = ShardDriver::WithValues(driver.GroupPush(1, step, {1, 1, 1, 1}), step);
    if (step == 1) {
      EXPECT_EQ(CodeOf(driver.Ask(push)), Code::kOk);  // one step ahead is allowed
    } else {
      EXPECT_TRUE(driver.Deliver(push).empty());
    }
  }
  EXPECT_THAT(driver.Values(), ElementsAre(-2, -2, -2, -2));
  const std::vector<Message> replies = driver.Deliver(driver.GroupPush(2, 1, {1, 1, 1, 1}));
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_THAT(ShardDriver::ValuesIn(replies[1]), ElementsAre(-3, -3, -3, -3));
}

TEST(ShardGates, ParkedRepliesEndAtTheirDeadlineNamingWhoIsBehind) {
  ShardDriver driver(TestJob(Ssp(0), 2));
  EXPECT_TRUE(
      driver.Deliver(ShardDriver::WithValues(driver.GroupPush(1, 3, {1, 1, 1, 1}), 3)).empty());
  driver.Wake();
  driver.Pass(absl::Milliseconds(999));
  EXPECT_TRUE(driver.Wake().empty());
  driver.Pass(absl::Milliseconds(1));
  EXPECT_LE(driver.actor().NextWake(), driver.now());
  const std::vector<Message> replies = driver.Wake();
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(CodeOf(replies[0]), Code::kDeadlineExceeded);
  EXPECT_TRUE(replies[0].envelope.has_push_reply());
  EXPECT_THAT(TextOf(replies[0]), HasSubstr("group 2 is at step 0 of 3"));
  EXPECT_GT(driver.actor().NextWake(), driver.now());
}

TEST(ShardGates, ARetryTakesThePlaceOfItsParkedRequest) {
  ShardDriver driver(TestJob(Ssp(0), 2));
  Message push = ShardDriver::WithValues(driver.GroupPush(1, 1, {1, 1, 1, 1}), 1);
  EXPECT_TRUE(driver.Deliver(push).empty());
  push.connection = 78;
  EXPECT_TRUE(driver.Deliver(push).empty());
  const std::vector<Message> replies = driver.Deliver(driver.GroupPush(2, 1, {1, 1, 1, 1}));
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_EQ(replies[1].connection, 78u);
  EXPECT_EQ(Pushed(replies[1]).applied_version(), 1u);
  EXPECT_THAT(ShardDriver::ValuesIn(replies[1]), ElementsAre(-2, -2, -2, -2));
}

TEST(ShardGates, ParksOnlySoMany) {
  ShardDriver driver(TestJob(kAsync, 0));
  for (size_t i = 0; i <= kParkedPerShardMax; ++i) {
    Message pull = driver.Pull();
    pull.envelope.mutable_pull_request()->mutable_read()->set_min_version(1);
    const std::vector<Message> replies = driver.Deliver(pull);
    if (i < kParkedPerShardMax) {
      ASSERT_TRUE(replies.empty());
    } else {
      ASSERT_EQ(replies.size(), 1u);
      EXPECT_EQ(CodeOf(replies[0]), Code::kResourceExhausted);
    }
  }
  EXPECT_EQ(driver.Deliver(driver.ClientPush(1, {1, 1, 1, 1})).size(), kParkedPerShardMax + 1);
}

TEST(ShardGates, ReadersMayDemandVersionAgeAndStalenessOfTheirOwn) {
  ShardDriver driver(TestJob(kAsync, 2));
  driver.Ask(driver.GroupPush(1, 4, {1, 1, 1, 1}));
  driver.Pass(absl::Seconds(1));
  std::vector<Message> pulls(3, driver.Pull());
  pulls[0].envelope.mutable_pull_request()->mutable_read()->set_min_version(2);
  pulls[1].envelope.mutable_pull_request()->mutable_read()->set_max_age_ms(500);
  proto::ReadBound& bound = *pulls[2].envelope.mutable_pull_request()->mutable_read();
  bound.set_step(4);
  bound.set_max_staleness(2);
  for (size_t i = 0; i < pulls.size(); ++i) {
    pulls[i].envelope.mutable_header()->set_request_id(100 + i);
    EXPECT_TRUE(driver.Deliver(pulls[i]).empty());
  }
  // The first two accept any update; the third waits for group 2 at step 2.
  EXPECT_EQ(driver.Deliver(driver.GroupPush(2, 1, {1, 1, 1, 1})).size(), 3u);
  EXPECT_EQ(driver.Deliver(driver.GroupPush(2, 2, {1, 1, 1, 1})).size(), 2u);

  Message impatient = driver.Pull();
  impatient.envelope.mutable_pull_request()->mutable_read()->set_min_version(99);
  impatient.envelope.mutable_pull_request()->set_deadline_ms(0);
  EXPECT_EQ(CodeOf(driver.Ask(impatient)), Code::kDeadlineExceeded);
}

TEST(ShardGates, AnswersStaleWhenSoPlanted) {
  const BugInPlace bug(PlantedBug::kAnswerStaleReads);
  ShardDriver driver(TestJob(Ssp(0), 2));
  const Message reply =
      driver.Ask(ShardDriver::WithValues(driver.GroupPush(1, 5, {1, 1, 1, 1}), 5));
  EXPECT_EQ(CodeOf(reply), Code::kOk);
  EXPECT_TRUE(Pushed(reply).has_values());
}

TEST(ShardGates, BufferedUpdatesOncePerKArrivals) {
  ShardDriver driver(TestJob(Buffered(2), 2));
  const Message first =
      driver.Ask(ShardDriver::WithValues(driver.GroupPush(1, 1, {2, 2, 2, 2}, 1), 1));
  EXPECT_EQ(Pushed(first).applied_version(), 0u);
  EXPECT_THAT(ShardDriver::ValuesIn(first), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(Pushed(first).state().clocks_size(), 0);
  const Message second = driver.Ask(driver.GroupPush(2, 1, {4, 4, 4, 4}, 2));
  EXPECT_EQ(Pushed(second).applied_version(), 1u);
  EXPECT_EQ(Pushed(second).state().clocks_size(), 2);
  EXPECT_THAT(driver.Values(), ElementsAre(-2, -2, -2, -2));
}

TEST(ShardGates, BufferedFlushesTheTailWhenGroupsEnd) {
  for (const uint64_t arrivals : {0, 2}) {
    TestJob job(Buffered(arrivals), 2);
    ShardDriver driver(job);
    const Message push = driver.GroupPush(1, 1, {2, 2, 2, 2});
    EXPECT_EQ(Pushed(driver.Ask(push)).applied_version(), 0u);
    job.EndGroup(2, proto::Group::DONE);
    driver.AdoptView(job);
    EXPECT_THAT(driver.Values(), ElementsAre(-2, -2, -2, -2)) << arrivals;
    EXPECT_EQ(Pushed(driver.Ask(push)).applied_version(), 1u);
  }
}

TEST(ShardGates, OnlyWorkersPushForAGroup) {
  TestJob job(kAsync, 2);
  ShardDriver driver(job);
  const std::vector<float> before = driver.Values();
  Message forged = driver.GroupPush(1, 1, {1, 1, 1, 1});
  SetSender(kTestClient.value(), forged);
  const Message reply = driver.Ask(forged);
  EXPECT_EQ(CodeOf(reply), Code::kPermissionDenied);
  EXPECT_THAT(TextOf(reply), HasSubstr("client-0 is no member of group 1"));
  // Nor does a node that no view names, or that only a newer view may name.
  SetSender(99, forged);
  forged.envelope.mutable_header()->set_epoch(job.view.epoch());
  EXPECT_EQ(CodeOf(driver.Ask(forged)), Code::kInvalidArgument);
  forged.envelope.mutable_header()->set_epoch(job.view.epoch() + 1);
  EXPECT_EQ(CodeOf(driver.Ask(forged)), Code::kUnavailable);
  EXPECT_EQ(driver.Values(), before);
  // A worker that has left the group may repeat what it pushed as a member.
  SetSender(12, forged);
  EXPECT_EQ(CodeOf(driver.Ask(forged)), Code::kOk);
}

// Without keys anybody can give the number of a node, but not the number of its process.
TEST(ShardGates, WhatIsSentInTheNameOfANodeByAnotherProcessIsDropped) {
  TestJob job(kAsync, 1);
  ShardDriver driver(job);
  const std::vector<float> before = driver.Values();
  for (Message message :
       {driver.ClientPush(1, {1, 1, 1, 1}), driver.GroupPush(1, 1, {1, 1, 1, 1}), driver.Pull()}) {
    const uint64_t impostors = driver.actor().counters().impostors;
    message.envelope.mutable_header()->set_incarnation(5);
    EXPECT_THAT(driver.Deliver(message), testing::IsEmpty());
    EXPECT_EQ(driver.actor().counters().impostors, impostors + 1);
  }
  // The largest incarnation would shut out the producer that it was given for.
  Message last = driver.ClientPush(1, {1, 1, 1, 1});
  last.envelope.mutable_push_request()->mutable_id()->set_producer_incarnation(~uint64_t{0});
  EXPECT_EQ(CodeOf(driver.Ask(last)), Code::kInvalidArgument);
  EXPECT_EQ(driver.Values(), before);
  EXPECT_EQ(CodeOf(driver.Ask(driver.ClientPush(1, {1, 1, 1, 1}))), Code::kOk);
}

TEST(ShardGates, OnlyNodesOfTheJobReadTables) {
  TestJob job(kAsync, 1);
  ShardDriver driver(job);
  Message stranger = driver.Pull();
  SetSender(99, stranger);
  EXPECT_EQ(CodeOf(driver.Ask(stranger)), Code::kInvalidArgument);
  stranger.envelope.mutable_header()->set_epoch(job.view.epoch() + 1);
  EXPECT_EQ(CodeOf(driver.Ask(stranger)), Code::kUnavailable) << "a newer view may name it";
}

// Otherwise a table would stop for good once what its groups hold for each other fills the memory.
TEST(ShardGates, WhatIsHeldForARequestDoesNotKeepItOut) {
  for (const Contract& contract : {kBsp, Buffered(2)}) {
    // A job that continues a snapshot may begin at a later step than the next one.
    ShardDriver driver(TestJob(contract, 2), {.queued_bytes_max = 8});
    EXPECT_EQ(CodeOf(driver.Ask(driver.GroupPush(1, 3, {1, 1, 1, 1}))), Code::kOk);
    // The pushes of a group may wait for its pulls.
    EXPECT_EQ(CodeOf(driver.Ask(driver.Pull())), Code::kOk);
    EXPECT_EQ(CodeOf(driver.Ask(driver.GroupPush(2, 3, {3, 3, 3, 3}))), Code::kOk);
    EXPECT_THAT(driver.Values(), ElementsAre(-2, -2, -2, -2));
  }
}

// The push that fills the buffer of one shard may be that of the next step, which a group makes
// after this step has been pushed to all shards and tables.
TEST(ShardGates, WhatAnotherShardHoldsKeepsNoPushOut) {
  const auto of_other_table = [](auto& id_or_pull) { id_or_pull.set_table(kTestTable + 1); };
  for (const Contract& contract : {kBsp, Buffered(2), kAsync}) {
    for (const bool is_open : {true, false}) {
      TestJob job(Buffered(2), 2);
      proto::Table& other = *job.view.add_tables();
      other = job.view.tables(0);
      other.set_id(kTestTable + 1);
      other.mutable_spec()->set_name("biases");
      *other.mutable_spec()->mutable_contract() = ContractToProto(contract);
      ShardDriver driver(job, {.queued_bytes_max = 8});
      if (is_open) {
        Message pull = driver.Pull();
        of_other_table(*pull.envelope.mutable_pull_request());
        EXPECT_EQ(CodeOf(driver.Ask(pull)), Code::kOk);
      }
      EXPECT_EQ(CodeOf(driver.Ask(driver.GroupPush(1, 1, {1, 1, 1, 1}))), Code::kOk);
      Message push = driver.GroupPush(1, 1, {1, 1, 1, 1});
      of_other_table(*push.envelope.mutable_push_request()->mutable_id());
      EXPECT_EQ(CodeOf(driver.Ask(push)), Code::kOk) << ContractName(contract) << is_open;
    }
  }
}

TEST(ShardGates, WhatNobodyWaitsForIsRefusedOnceTheMemoryIsFull) {
  ShardDriver driver(TestJob(kBsp, 2), {.queued_bytes_max = 8});
  EXPECT_EQ(CodeOf(driver.Ask(driver.GroupPush(1, 1, {1, 1, 1, 1}))), Code::kOk);
  const Message ahead = driver.Ask(driver.GroupPush(1, 2, {1, 1, 1, 1}));
  EXPECT_EQ(CodeOf(ahead), Code::kResourceExhausted);
  EXPECT_THAT(TextOf(ahead), HasSubstr("bytes wait in this loop"));
}

}  // namespace
}  // namespace covey::server
