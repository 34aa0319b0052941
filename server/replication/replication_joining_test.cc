// SPDX-License-Identifier: Apache-2.0
#include "common/net/frame_checksum.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/chain_fixture.h"

// Replicas that join a chain: filled, moved to, filled again.

namespace covey::server {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using Code = absl::StatusCode;

constexpr Contract kAsync{.kind = Contract::Kind::kAsync};
constexpr Contract kBuffered2{.kind = Contract::Kind::kBuffered, .buffer = 2};

Code CodeOf(const Message& reply) { return StatusOf(reply).code(); }
const proto::PushReply& Pushed(const Message& reply) { return reply.envelope.push_reply(); }
bool IsRecord(const Message& message) { return message.envelope.has_replicate_request(); }

class ReplicationJoining : public ::testing::Test {
 protected:
  Message Push(uint64_t sequence, float value) {
    return requests_.ClientPush(sequence, {value, value, value, value});
  }
  Message GroupPush(uint32_t group, uint64_t step, float value) {
    return requests_.GroupPush(group, step, {value, value, value, value});
  }
  Message Pull() { return requests_.Pull(); }

  // Makes requests; its own loop is not part of the test.
  ShardDriver requests_{TestJob(kAsync, 2)};
};

TEST_F(ReplicationJoining, AJoiningReplicaIsFilledWhilePushesGoOn) {
  for (const auto kind : {proto::Optimizer::SGD, proto::Optimizer::ADAM}) {
    ChainDriver chain(kAsync, 2, 2, 1);
    chain.job.spec().mutable_optimizer()->set_kind(kind);
    chain.PublishToAll();
    for (uint64_t step = 1; step <= 3; ++step) chain.Ask(0, GroupPush(1, step, 1));
    chain.SetChain({{0, false}, {1, true}});
    chain.PublishToAll();
    EXPECT_EQ(Pushed(chain.Ask(0, GroupPush(1, 4, 1))).applied_version(), 4u);
    chain.Pass(absl::Milliseconds(20));
    const std::vector<proto::ReplicaReport> reports = chain.Reports();
    ASSERT_EQ(reports.size(), 1u);
    EXPECT_EQ(reports[0].kind(), proto::ReplicaReport::READY);
    EXPECT_EQ(reports[0].node(), ChainDriver::Id(1).value());
    EXPECT_EQ(reports[0].chain_epoch(), chain.shard().chain_epoch());
    EXPECT_EQ(chain.Digest(0), chain.Digest(1));

    // Ready means that nothing is durable without it any more, regardless of the view.
    chain.lose = IsRecord;
    chain.Deliver(0, GroupPush(1, 5, 1));
    chain.Settle();
    EXPECT_THAT(chain.Answers(), IsEmpty());
    chain.lose = [](const Message&) { return false; };
    chain.Pass(absl::Milliseconds(100));
    EXPECT_THAT(chain.Answers(), SizeIs(1));

    chain.SetChain({{1, false}});
    chain.PublishToAll();
    const Message again = chain.Ask(1, GroupPush(1, 5, 1));
    EXPECT_TRUE(Pushed(again).duplicate());
    EXPECT_EQ(Pushed(again).state().clocks(0).step(), 5u);
    EXPECT_EQ(chain.actor(0).FindReplica({TableId(kTestTable), ShardIndex(0)}), nullptr);
  }
}

TEST_F(ReplicationJoining, AMoveWaitsForWhatWasPromised) {
  ChainDriver chain(kBuffered2, 2, 2, 1);
  chain.PublishToAll();
  EXPECT_TRUE(Pushed(chain.Ask(0, GroupPush(1, 1, 2))).durable());
  chain.SetChain({{0, false}, {1, true}});
  chain.PublishToAll();
  chain.Pass(absl::Milliseconds(400));
  EXPECT_THAT(chain.Reports(), IsEmpty());
  EXPECT_EQ(chain.Digest(0), chain.Digest(1));
  chain.Ask(0, GroupPush(2, 1, 4));
  chain.Pass(absl::Milliseconds(10));
  EXPECT_THAT(chain.Reports(), SizeIs(1));
}

TEST_F(ReplicationJoining, AMoveOfAnIdleShardDoesNotWaitForArrivalsThatNeverCome) {
  ChainDriver chain(kBuffered2, 2, 2, 1);
  chain.PublishToAll();
  chain.Ask(0, GroupPush(1, 1, 2));
  chain.SetChain({{0, false}, {1, true}});
  chain.PublishToAll();
  chain.Pass(absl::Milliseconds(2200));
  EXPECT_THAT(chain.Reports(), SizeIs(1));
  EXPECT_EQ(chain.replica(1).content()->version(), Version(1));
}

// It was out of the chain, and lost its content, in views that the head never saw.
TEST_F(ReplicationJoining, AReadyReplicaThatComesBackEmptyIsNotTakenForReady) {
  ChainDriver chain(kAsync, 0, 2, 1);
  chain.PublishToAll();
  for (uint64_t sequence = 1; sequence <= 3; ++sequence) chain.Ask(0, Push(sequence, 1));
  chain.SetChain({{0, false}, {1, true}});
  chain.PublishToAll();
  chain.Pass(absl::Milliseconds(50));
  ASSERT_THAT(chain.Reports(), SizeIs(1));
  chain.SetChain({{0, false}});
  chain.Publish(1);
  chain.SetChain({{0, false}, {1, true}});
  chain.lose = [](const Message&) { return true; };
  chain.PublishToAll();
  chain.Pass(absl::Milliseconds(500));
  EXPECT_THAT(chain.Reports(), IsEmpty());
  chain.lose = [](const Message&) { return false; };
  chain.Pass(absl::Seconds(1));
  EXPECT_THAT(chain.Reports(), SizeIs(1));
  EXPECT_EQ(chain.Digest(0), chain.Digest(1));
}

// Its new predecessor keeps no records from before it learned of the replica.
// It was out of the chain, and lost a record that was not durable, in views that the head never
// saw.
TEST_F(ReplicationJoining, AReplicaThatComesBackWithLessGetsTheRecordAgain) {
  ChainDriver chain(kAsync, 0, 3, 3);
  chain.PublishToAll();
  chain.lose = [](const Message& message) {
    return IsRecord(message) && message.to().node == ChainDriver::Id(2);
  };
  chain.Deliver(0, Push(1, 1));
  chain.Settle();
  ASSERT_EQ(chain.replica(1).content()->index(), 1u);
  const std::vector<std::pair<uint32_t, bool>> views[] = {{{0, false}, {2, false}},
                                                          {{0, false}, {2, false}, {1, true}}};
  for (const auto& view : views) {
    chain.SetChain(view);
    chain.Publish(1);
    chain.Publish(2);
    chain.Pass(absl::Milliseconds(50));
  }
  ASSERT_EQ(chain.replica(1).content()->index(), 0u);
  EXPECT_THAT(chain.Answers(), IsEmpty());
  chain.SetChain({{0, false}, {1, false}});
  chain.PublishToAll();
  chain.Pass(absl::Milliseconds(500));
  EXPECT_EQ(chain.Digest(0), chain.Digest(1));
  EXPECT_THAT(chain.Answers(), SizeIs(1));
}

TEST_F(ReplicationJoining, AReplicaWithOldContentGetsLostPiecesAgain) {
  for (const uint64_t lost : {0u, 1u}) {
    SCOPED_TRACE(testing::Message() << "pieces up to " << lost << " are lost once");
    ChainDriver chain(kAsync, 0, 3, 2);
    chain.PublishToAll();
    chain.Ask(0, Push(1, 1));
    chain.SetChain({{0, false}, {1, false}, {2, true}});
    chain.PublishToAll();
    chain.Pass(absl::Milliseconds(50));
    ASSERT_EQ(chain.Digest(0), chain.Digest(2));
    chain.Reports();

    chain.SetChain({{0, false}, {2, true}});
    chain.Publish(0);
    for (uint64_t sequence = 2; sequence <= 4; ++sequence) chain.Ask(0, Push(sequence, 1));
    uint64_t to_lose = 0;
    chain.lose = [&](const Message& message) {
      const bool is_lost = message.envelope.has_replica_piece() && !message.frames.empty() &&
                           message.envelope.replica_piece().piece() == to_lose && to_lose <= lost;
      if (is_lost) ++to_lose;
      return is_lost;
    };
    chain.Publish(2);
    chain.Pass(absl::Milliseconds(250));
    ASSERT_EQ(to_lose, lost + 1);
    EXPECT_EQ(chain.Digest(0), chain.Digest(2));
    const std::vector<proto::ReplicaReport> reports = chain.Reports();
    ASSERT_EQ(reports.size(), 1u);
    EXPECT_EQ(reports[0].kind(), proto::ReplicaReport::READY);
    EXPECT_EQ(reports[0].node(), ChainDriver::Id(2).value());
  }
}

// The view calls it joined although it dropped its content: it must not start from the initializer.
TEST_F(ReplicationJoining, AReplicaWithoutContentThatIsCalledJoinedSaysSo) {
  ChainDriver chain(kAsync, 0, 2, 1);
  chain.PublishToAll();
  chain.Ask(0, Push(1, 1));
  chain.lose = [](const Message&) { return true; };
  chain.SetChain({{0, false}, {1, true}});
  chain.PublishToAll();
  chain.SetChain({{1, false}});
  chain.PublishToAll();
  const std::vector<proto::ReplicaReport> reports = chain.Reports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].kind(), proto::ReplicaReport::UNFIT);
  EXPECT_EQ(CodeOf(chain.Ask(1, Pull())), Code::kUnavailable);
  // The chain has changed before that report arrived, so the report no longer counts.
  chain.SetChain({{1, false}, {0, true}});
  chain.PublishToAll();
  const std::vector<proto::ReplicaReport> again = chain.Reports();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].kind(), proto::ReplicaReport::UNFIT);
  EXPECT_GT(again[0].chain_epoch(), reports[0].chain_epoch());
}

TEST_F(ReplicationJoining, AReplicaThatDiffersIsUnfitAndIsFilledAgain) {
  ChainDriver chain(kAsync, 0, 2, 2);
  chain.PublishToAll();
  chain.Ask(0, Push(1, 1));
  // One bit of one record, with a matching checksum.
  chain.lose = IsRecord;
  chain.Deliver(0, Push(2, 1));
  Message record = chain.sent.back();
  ASSERT_TRUE(IsRecord(record));
  record.frames[0] = ShardDriver::Floats({1, 1, 1, 2});
  record.envelope.clear_frame_checksums();
  chain.Inject(1, record);
  EXPECT_EQ(chain.replica(1).content()->index(), 1u) << "a frame without its checksum";
  SetFrameChecksums(record);
  chain.Inject(1, record);
  chain.lose = [](const Message&) { return false; };
  chain.Pass(absl::Milliseconds(200));
  EXPECT_NE(chain.Digest(0), chain.Digest(1));
  for (uint64_t sequence = 3; sequence <= 70 && chain.Digest(1) != 0; ++sequence) {
    chain.Deliver(0, Push(sequence, 1));
    chain.Settle();
  }
  const std::vector<proto::ReplicaReport> reports = chain.Reports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].kind(), proto::ReplicaReport::UNFIT);
  EXPECT_EQ(reports[0].node(), ChainDriver::Id(1).value());
  EXPECT_EQ(chain.actor(1).counters().unfit_replicas, 1u);
  chain.SetChain({{0, false}, {1, true}});
  chain.PublishToAll();
  chain.Pass(absl::Milliseconds(50));
  EXPECT_EQ(chain.Digest(0), chain.Digest(1));
}

}  // namespace
}  // namespace covey::server
