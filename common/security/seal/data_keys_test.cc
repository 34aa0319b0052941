// SPDX-License-Identifier: Apache-2.0
#include "common/security/seal/data_keys.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "common/base/clock.h"

namespace covey {
namespace {

constexpr uint64_t kJob = 77;

std::shared_ptr<DataKeys> MustMake() {
  auto keys = DataKeys::Make(kJob);
  EXPECT_TRUE(keys.ok()) << keys.status();
  return *std::move(keys);
}

class Views {
 public:
  explicit Views(uint64_t epoch) { view_.set_epoch(epoch); }
  Views& Add(uint64_t id, const std::string& key, proto::Node::State state = proto::Node::ALIVE) {
    proto::Node& node = *view_.add_nodes();
    node.set_id(id);
    node.set_incarnation(100 + id);
    node.set_role(proto::WORKER);
    node.set_state(state);
    node.set_data_key(key);
    node.set_rank(static_cast<uint32_t>(id));
    return *this;
  }
  void FollowedBy(DataKeys& keys, NodeId self = NodeId(1)) const {
    const auto view = ClusterView::Make(view_);
    ASSERT_TRUE(view.ok()) << view.status();
    keys.Follow(self, **view);
  }

 private:
  proto::ClusterView view_;
};

TEST(DataKeysTest, TwoNodesDeriveTheSameKeys) {
  const auto alice = MustMake();
  const auto bob = MustMake();
  Views view(1);
  view.Add(11, alice->public_key()).Add(12, bob->public_key());
  view.FollowedBy(*alice, NodeId(11));
  view.FollowedBy(*bob, NodeId(12));
  const auto to = alice->Find(NodeId(12));
  const auto from = bob->Find(NodeId(11));
  ASSERT_TRUE(to.ok() && from.ok());
  EXPECT_EQ((*from)->incarnation, Incarnation(111));
  EXPECT_EQ((*to)->pair.view(), (*from)->pair.view());
  auto sealer = MakeCipher(PartCipher::Use::kSeal, (*to)->pair, alice->To(**to, 0, 3), 0);
  auto opener = MakeCipher(PartCipher::Use::kOpen, (*from)->pair, bob->From(**from, 0, 3), 0);
  ASSERT_TRUE(sealer.ok() && opener.ok());
  uint8_t bytes[4] = {1, 2, 3, 4};
  PartCipher::Tag tag;
  ASSERT_TRUE(sealer->Seal({}, {}, bytes, bytes, tag));
  ASSERT_TRUE(opener->Open({}, {}, bytes, tag, bytes));
  EXPECT_EQ(bytes[3], 4);
}

TEST(DataKeysTest, KnowsTheNodesOfTheNewestView) {
  const auto keys = MustMake();
  const std::string key = MustMake()->public_key();
  EXPECT_EQ(keys->Find(NodeId(5)).status().code(), absl::StatusCode::kNotFound);
  Views(3).Add(5, key).Add(6, key, proto::Node::LEFT).FollowedBy(*keys);
  const auto five = keys->Find(NodeId(5));
  ASSERT_TRUE(five.ok());
  EXPECT_TRUE(keys->Find(NodeId(6)).ok());
  // An older view does not bring anything back.
  Views(2).Add(7, key).FollowedBy(*keys);
  EXPECT_EQ(keys->Find(NodeId(7)).status().code(), absl::StatusCode::kNotFound);
  Views(4).Add(5, key, proto::Node::DEAD).FollowedBy(*keys);
  EXPECT_EQ(keys->Find(NodeId(5)).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(keys->Knows(**five));
}

TEST(DataKeysTest, ANodeThatHasLeftIsHeardForAMoment) {
  const auto keys = *DataKeys::Make(kJob, absl::ZeroDuration());
  const std::string key = MustMake()->public_key();
  Views(1).Add(5, key).Add(6, key).FollowedBy(*keys);
  const auto five = *keys->Find(NodeId(5));
  Views(2).Add(5, key, proto::Node::LEFT).Add(6, key).FollowedBy(*keys);
  keys->changes();
  EXPECT_FALSE(keys->Knows(*five));
  EXPECT_EQ(keys->Find(NodeId(5)).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(keys->Find(NodeId(6)).ok());
  // Nor does a later view bring it back.
  Views(3).Add(5, key, proto::Node::LEFT).Add(6, key).FollowedBy(*keys);
  EXPECT_FALSE(keys->Find(NodeId(5)).ok());
  // By default its last messages are heard, for five seconds.
  const auto patient = MustMake();
  Views(1).Add(5, key, proto::Node::LEFT).FollowedBy(*patient);
  const uint64_t changes = patient->changes();
  EXPECT_TRUE(patient->Find(NodeId(5)).ok());
  const absl::Time until = MonotonicNow() + 2 * DataKeys::kHeardAfterLeaving;
  while (patient->changes() == changes && MonotonicNow() < until) {
  }
  EXPECT_FALSE(patient->Find(NodeId(5)).ok());
}

TEST(DataKeysTest, NodesThatLeaveOneAfterTheOtherAreDroppedOneAfterTheOther) {
  constexpr auto kLeft = proto::Node::LEFT;
  const auto keys = *DataKeys::Make(kJob, absl::Milliseconds(20));
  const std::string key = MustMake()->public_key();
  const absl::Time patience = MonotonicNow() + absl::Seconds(20);
  const auto await_silence = [&](NodeId node) {
    while (keys->Find(node).ok() && MonotonicNow() < patience) keys->changes();
    EXPECT_FALSE(keys->Find(node).ok()) << node.value();
  };
  Views(1).Add(5, key, kLeft).Add(6, key).Add(7, key).FollowedBy(*keys);
  const absl::Time first_left = MonotonicNow();
  while (MonotonicNow() < first_left + absl::Milliseconds(10)) {
  }
  Views(2).Add(5, key, kLeft).Add(6, key, kLeft).Add(7, key).FollowedBy(*keys);
  await_silence(NodeId(5));
  await_silence(NodeId(6));
  EXPECT_TRUE(keys->Find(NodeId(7)).ok());
}

TEST(DataKeysTest, AKeyStaysFromViewToView) {
  const auto keys = MustMake();
  const std::string key = MustMake()->public_key();
  Views(1).Add(5, key).FollowedBy(*keys);
  const auto before = keys->Find(NodeId(5));
  Views(2).Add(5, key).Add(6, key).FollowedBy(*keys);
  ASSERT_TRUE(before.ok());
  EXPECT_TRUE(keys->Knows(**before));
  EXPECT_EQ(*keys->Find(NodeId(5)), *before);
  Views(3).Add(5, MustMake()->public_key()).FollowedBy(*keys);
  EXPECT_FALSE(keys->Knows(**before));
  EXPECT_NE(*keys->Find(NodeId(5)), *before);
}

TEST(DataKeysTest, RefusesNodesWithoutAUsableKey) {
  const auto keys = MustMake();
  Views(1)
      .Add(5, "")
      .Add(6, std::string(31, 'x'))
      .Add(7, std::string(33, 'x'))
      .Add(8, std::string(32, '\0'))
      .FollowedBy(*keys);
  for (uint64_t id = 5; id <= 7; ++id) {
    EXPECT_EQ(keys->Find(NodeId(id)).status().code(), absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_EQ(keys->Find(NodeId(8)).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(DataKeysTest, CountsChanges) {
  const auto keys = MustMake();
  const uint64_t start = keys->changes();
  Views(1).FollowedBy(*keys, NodeId(0));
  EXPECT_EQ(keys->changes(), start + 1);
  EXPECT_EQ(keys->self(), NodeId(0));
  Views(1).FollowedBy(*keys, NodeId(0));
  EXPECT_EQ(keys->changes(), start + 1);
  Views(1).FollowedBy(*keys, NodeId(4));
  EXPECT_EQ(keys->changes(), start + 2);
  EXPECT_EQ(keys->self(), NodeId(4));
  Views(2).FollowedBy(*keys, NodeId(4));
  EXPECT_EQ(keys->changes(), start + 3);
}

TEST(DataKeysTest, ALoopIsClaimedOnce) {
  const auto keys = MustMake();
  EXPECT_TRUE(keys->ClaimLoop(1));
  EXPECT_TRUE(keys->ClaimLoop(2));
  EXPECT_FALSE(keys->ClaimLoop(1));
}

}  // namespace
}  // namespace covey
