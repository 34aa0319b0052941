// SPDX-License-Identifier: Apache-2.0

// The checkers of snapshots are silent about valid histories and report invalid ones.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/buffer.h"
#include "common/snapshot/testing/small_snapshot.h"
#include "common/store/testing/memory_folder.h"
#include "common/tensor/codec.h"
#include "common/tensor/wire_format.h"
#include "common/tensor/wire_format_proto.h"
#include "tests/sim/checkers/one_history.h"
#include "tests/sim/checkers/snapshot_cut.h"

namespace covey::sim {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Numbers {
  uint64_t epoch = 1;
  uint64_t node = 2;
  proto::Node::State state = proto::Node::ALIVE;
  uint32_t group = 1;
  uint64_t first_step = 1;
  uint32_t table = 1;
  uint64_t generation = 1;
};

Message View(const Numbers& numbers) {
  Message message;
  message.envelope.mutable_header()->set_node(kSchedulerNode.value());
  message.set_to({NodeId(), 0});
  proto::ClusterView& view = *message.envelope.mutable_watch_view_reply()->mutable_view();
  view.set_epoch(numbers.epoch);
  proto::Node& node = *view.add_nodes();
  node.set_id(numbers.node);
  node.set_state(numbers.state);
  proto::Group& group = *view.add_groups();
  group.set_id(numbers.group);
  group.set_first_step(numbers.first_step);
  proto::Table& table = *view.add_tables();
  table.set_id(numbers.table);
  table.add_shards()->set_generation(numbers.generation);
  return message;
}

class SnapshotCutTest : public testing::Test {
 protected:
  static constexpr size_t kElements = 2;  // of the shard

  explicit SnapshotCutTest(const SnapshotCut::Options& options = {.elements = kElements})
      : options_(options) {
    EXPECT_TRUE(snapshot_.WriteTo(store_).ok());
    checker_.OnSend(absl::UnixEpoch(), View({.generation = 7}));
  }
  // The group pushes the step, which adds to this element of the shard.
  void Push(uint32_t group, uint64_t step, size_t element = 0,
            WireFormat format = WireFormat::kFloat32) {
    Message message;
    message.envelope.mutable_header()->set_node(2);
    proto::PushId& id = *message.envelope.mutable_push_request()->mutable_id();
    id.set_table(1);
    id.set_producer_kind(proto::PushId::GROUP);
    id.set_producer(group);
    id.set_sequence(step);
    message.envelope.mutable_push_request()->set_format(ToProto(format));
    std::vector<float> gradient(kElements);
    gradient[element] = -1;
    std::vector<uint8_t> frame(EncodedBytes(format, kElements));
    Encode(format, gradient, frame);
    message.frames.push_back(Buffer::CopyOf(frame));
    checker_.OnSend(absl::UnixEpoch(), message);
  }

  // The record of the cut of snapshot 17 arrives at the server, under this chain epoch.
  void ReceiveCut(const std::string& server, uint64_t chain_epoch) {
    Message message;
    proto::ReplicateRequest& request = *message.envelope.mutable_replicate_request();
    request.mutable_chain()->set_table(1);
    request.mutable_chain()->set_generation(7);
    request.mutable_chain()->set_chain_epoch(chain_epoch);
    request.set_index(4);
    request.set_cut(17);
    checker_.OnReceived(absl::UnixEpoch(), server, message);
  }

  const SnapshotCut::Options options_;
  const SmallSnapshot snapshot_ = SmallSnapshot::Make(17, 42);
  const std::string folder_ = snapshot_.manifest.folder();
  MemoryFolder store_;
  Violations violations_;
  std::map<std::string, SnapshotCut::Held> held_;  // by server
  SnapshotCut checker_{options_,
                       [this](absl::string_view server, uint32_t, ShardId) {
                         const auto found = held_.find(std::string(server));
                         return found == held_.end() ? std::nullopt : std::optional(found->second);
                       },
                       violations_};
};

TEST_F(SnapshotCutTest, ReplicasHoldTheSameAtTheCut) {
  held_["server-0"] = {.chain_epoch = 5, .index = 4, .digest = 70};
  held_["server-1"] = {.chain_epoch = 5, .index = 4, .digest = 70};
  ReceiveCut("server-0", 5);
  ReceiveCut("server-1", 5);
  EXPECT_THAT(violations_.found(), IsEmpty());
  held_["server-1"].digest = 71;
  ReceiveCut("server-1", 5);
  EXPECT_THAT(violations_.found(),
              ElementsAre(HasSubstr("server-1 does not hold what another replica held")));
}

TEST_F(SnapshotCutTest, AReplicaOfALaterChainMayHoldAnotherRecord) {
  held_["server-0"] = {.chain_epoch = 5, .index = 4, .digest = 70};
  held_["server-1"] = {.chain_epoch = 6, .index = 4, .digest = 71};
  ReceiveCut("server-0", 5);
  ReceiveCut("server-1", 5);
  EXPECT_THAT(violations_.found(), IsEmpty());
}

TEST_F(SnapshotCutTest, ACompleteSnapshotStaysComplete) {
  checker_.Published(store_, folder_);
  checker_.StartOver(store_, folder_);
  EXPECT_THAT(violations_.found(), IsEmpty());
  MemoryFolder after_crash;
  checker_.StartOver(after_crash, "");
  EXPECT_THAT(violations_.found(), ElementsAre(HasSubstr("is not after a crash")));
}

TEST_F(SnapshotCutTest, ARemovedSnapshotMayBeGone) {
  checker_.Published(store_, folder_);
  checker_.Removed(store_, folder_);
  MemoryFolder after_crash;
  checker_.StartOver(after_crash, "");
  EXPECT_THAT(violations_.found(), IsEmpty());
}

TEST_F(SnapshotCutTest, AnOldSnapshotMayHaveLostItsManifestToARemovalThatFailed) {
  const SmallSnapshot later = SmallSnapshot::Make(18, 43);
  ASSERT_TRUE(later.WriteTo(store_).ok());
  checker_.Published(store_, folder_);
  checker_.Published(store_, later.manifest.folder());
  ASSERT_TRUE(store_.Remove(folder_, "MANIFEST").ok());
  checker_.StartOver(store_, "");
  EXPECT_THAT(violations_.found(), IsEmpty());
  ASSERT_TRUE(store_.Remove(later.manifest.folder(), "MANIFEST").ok());
  checker_.StartOver(store_, "");
  EXPECT_THAT(violations_.found(), ElementsAre(HasSubstr("is not after a crash")));
}

TEST_F(SnapshotCutTest, ARemovalLeavesWhatOthersNeed) {
  const SmallSnapshot later = SmallSnapshot::MakeAfter(snapshot_, 18, 43);
  ASSERT_TRUE(later.WriteTo(store_).ok());
  checker_.Published(store_, folder_);
  checker_.Published(store_, later.manifest.folder());
  ASSERT_TRUE(store_.Remove(folder_, "MANIFEST", {"part-3-1-000.cvp"}).ok());
  checker_.Removed(store_, folder_);
  EXPECT_THAT(violations_.found(), IsEmpty());
  ASSERT_TRUE(store_.Remove(folder_, "MANIFEST").ok());
  checker_.Removed(store_, folder_);
  EXPECT_THAT(violations_.found(),
              ElementsAre(HasSubstr("was complete before the removal of " + folder_)));
}

// A snapshot after step 5 of group 1, which has pushed step 5 only.
class StoredStepTest : public SnapshotCutTest {
 protected:
  explicit StoredStepTest(const SnapshotCut::Options& options = {.elements = kElements})
      : SnapshotCutTest(options) {
    proto::CutStep& last = *manifest_.add_groups();
    last.set_group(1);
    last.set_step(5);
    entry_.set_table(1);
    entry_.set_generation(7);
    entry_.set_version(1);
    stored_.values = {1, 0};
    proto::GroupClock& clock = *stored_.record.add_clocks();
    clock.set_group(1);
    clock.set_step(5);
    proto::ProducerRecord& producer = *stored_.record.add_producers();
    producer.set_kind(proto::PushId::GROUP);
    producer.set_producer(1);
    producer.add_sequences(5);
  }
  // Group 2, which is not in the cut, has pushed the step and was told that it is durable.
  void PushOfEndedGroup(uint64_t step) {
    checker_.OnSend(absl::UnixEpoch(), View({.group = 2, .generation = 7}));
    Push(1, 5);
    Push(2, step, 1);
    AcknowledgeAsDurable(2, step);
    manifest_.set_epoch(100);
  }
  void AcknowledgeAsDurable(uint32_t group, uint64_t step) {
    Message message;
    proto::PushReply& reply = *message.envelope.mutable_push_reply();
    reply.mutable_id()->set_table(1);
    reply.mutable_id()->set_producer_kind(proto::PushId::GROUP);
    reply.mutable_id()->set_producer(group);
    reply.mutable_id()->set_sequence(step);
    reply.set_durable(true);
    reply.mutable_state()->set_generation(7);
    checker_.OnSend(absl::UnixEpoch(), message);
  }
  std::vector<std::string> Check() {
    checker_.CheckShard(manifest_, entry_, stored_);
    return violations_.found();
  }

  proto::SnapshotManifest manifest_;
  proto::SnapshotShard entry_;
  StoredShard stored_;
};

TEST_F(StoredStepTest, AStepUpToTheCutIsInOnce) {
  Push(1, 5);
  EXPECT_THAT(Check(), IsEmpty());
  stored_.values[0] = 2;
  EXPECT_THAT(Check(), Contains(HasSubstr("step 5 of group 1 is in with 2")));
}

TEST_F(StoredStepTest, AStepIsRecognisedInEachFormat) {
  stored_.values = {0, 1};
  for (const WireFormat format : kWireFormats) {
    Push(1, 5, 1, format);
    EXPECT_THAT(Check(), IsEmpty()) << WireFormatName(format);
  }
}

TEST_F(StoredStepTest, AStepUpToTheCutIsNotMissing) {
  Push(1, 5);
  stored_.values[0] = 0;
  EXPECT_THAT(Check(), Contains(HasSubstr("step 5 of group 1 is in with 0")));
}

TEST_F(StoredStepTest, AStepThatWasNotDurableMayBeMissingWithoutItsSender) {
  Push(1, 4, 1);
  Push(1, 5);
  checker_.OnSend(absl::UnixEpoch(), View({.state = proto::Node::DEAD, .generation = 7}));
  EXPECT_THAT(Check(), IsEmpty());
}

TEST_F(StoredStepTest, AStepUpToTheCutThatWasDurableIsNotMissingWithoutItsSender) {
  Push(1, 5);
  AcknowledgeAsDurable(1, 5);
  checker_.OnSend(absl::UnixEpoch(), View({.state = proto::Node::DEAD, .generation = 7}));
  stored_.values[0] = 0;
  EXPECT_THAT(Check(), Contains(HasSubstr("step 5 of group 1 is in with 0")));
}

TEST_F(StoredStepTest, AStepBeyondTheCutIsNotIn) {
  Push(1, 6);
  EXPECT_THAT(Check(), Contains(HasSubstr("step 6 of group 1 is in, beyond the cut at step 5")));
}

TEST_F(StoredStepTest, ADurableStepOfAGroupThatHasEndedIsNotMissing) {
  PushOfEndedGroup(6);
  EXPECT_THAT(Check(), Contains(HasSubstr("step 6 of group 2 is in with 0")));
}

class StoredCommonStepTest : public StoredStepTest {
 protected:
  StoredCommonStepTest() : StoredStepTest({.elements = kElements, .has_common_steps = true}) {}
};

TEST_F(StoredCommonStepTest, AStepOfAGroupThatHasEndedIsNotMissing) {
  PushOfEndedGroup(5);
  EXPECT_THAT(Check(), Contains(HasSubstr("step 5 of group 2 is in with 0")));
}

TEST_F(StoredCommonStepTest, ALaterStepOfAGroupThatHasEndedWaitsForTheOthers) {
  PushOfEndedGroup(6);
  EXPECT_THAT(Check(), IsEmpty());
}

TEST_F(StoredStepTest, AStepThatIsInIsRemembered) {
  Push(1, 5);
  stored_.record.clear_producers();
  EXPECT_THAT(Check(), ElementsAre(HasSubstr("is in, and not remembered")));
}

TEST_F(StoredStepTest, AStepOfAnEarlierJobIsThatOfItsSnapshot) {
  Push(9, 1);
  EXPECT_THAT(Check(),
              Contains(HasSubstr("step 1 of group 9 of an earlier job is in with 1 instead of 0")));
}

std::vector<std::string> AfterSmallSnapshot(const Numbers& numbers) {
  Violations violations;
  OneHistory checker(violations);
  checker.OnSend(absl::UnixEpoch(), View({.epoch = 50, .node = 9, .group = 3, .generation = 50}));
  checker.StartOver(SmallSnapshot::Make(17, 42).manifest);
  checker.OnSend(absl::UnixEpoch(), View(numbers));
  return violations.found();
}

TEST(OneHistoryTest, NumbersGoOnAfterARestore) {
  const Numbers valid{
      .epoch = 1000, .node = 10, .group = 4, .first_step = 1701, .generation = 1000};
  EXPECT_THAT(AfterSmallSnapshot(valid), IsEmpty());
  Numbers numbers = valid;
  numbers.epoch = 50;
  EXPECT_THAT(AfterSmallSnapshot(numbers), ElementsAre(HasSubstr("epoch 50 has epoch 50")));
  numbers = valid;
  numbers.node = 9;
  EXPECT_THAT(AfterSmallSnapshot(numbers), ElementsAre(HasSubstr("has node 9")));
  numbers = valid;
  numbers.group = 3;
  EXPECT_THAT(AfterSmallSnapshot(numbers), ElementsAre(HasSubstr("has group 3")));
  numbers = valid;
  numbers.first_step = 1;
  EXPECT_THAT(AfterSmallSnapshot(numbers), ElementsAre(HasSubstr("begins with step 1")));
  numbers = valid;
  numbers.generation = 50;
  EXPECT_THAT(AfterSmallSnapshot(numbers), ElementsAre(HasSubstr("generation 50")));
}

TEST(OneHistoryTest, WhatIsLeftOfTheEarlierJobIsRefused) {
  Violations violations;
  OneHistory checker(violations);
  checker.OnSend(absl::UnixEpoch(), View({.epoch = 50, .node = 9}));
  checker.StartOver(SmallSnapshot::Make(17, 42).manifest);
  Message reply;
  reply.envelope.mutable_header()->set_node(kSchedulerNode.value());
  reply.set_to({NodeId(9), 0});
  reply.envelope.mutable_heartbeat_reply();
  SetStatus(absl::AbortedError("dead"), reply);
  checker.OnSend(absl::UnixEpoch(), reply);
  EXPECT_THAT(violations.found(), IsEmpty());
  SetStatus(absl::OkStatus(), reply);
  checker.OnSend(absl::UnixEpoch(), reply);
  EXPECT_THAT(violations.found(), ElementsAre(HasSubstr("serves node 9 of an earlier job")));
}

}  // namespace
}  // namespace covey::sim
