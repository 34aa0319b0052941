// SPDX-License-Identifier: Apache-2.0

// What the momentum governor has measured goes on with the shard's content: in a replica that takes
// over, and in one that was filled, as shards are from a snapshot.

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "server/testing/chain_fixture.h"

namespace covey::server {
namespace {

constexpr Contract kAsync{.kind = Contract::Kind::kAsync};
constexpr ShardId kShard{TableId(kTestTable), ShardIndex(0)};
constexpr uint64_t kTakeover = 6;  // the first step of the new head

class GovernorTakeover : public ::testing::Test {
 protected:
  GovernorTakeover() : chain_(kAsync, 1, 3, 3) {
    proto::TableSpec& spec = chain_.job.spec();
    spec.mutable_optimizer()->set_kind(proto::Optimizer::MOMENTUM);
    spec.mutable_optimizer()->set_momentum(0.75);
    spec.mutable_asynchrony()->set_automatic_momentum(true);
    spec.mutable_learning_rate()->set_base(0.1);
  }

  // Each gradient was computed two updates ago. The new head is told no versions, so that it has
  // nothing but what the old one has measured.
  void Push(uint32_t server, uint64_t step) {
    const float x = static_cast<float>(step) / 7;
    Message push = requests_.GroupPush(1, step, {x, -x, 1 - x, x * x});
    const bool is_known = step > 2 && step < kTakeover;
    push.envelope.mutable_push_request()->set_base_version(is_known ? step - 3 : 0);
    EXPECT_TRUE(StatusOf(chain_.Ask(server, push)).ok());
  }
  void Train(uint32_t server, uint64_t first, uint64_t last) {
    for (uint64_t step = first; step <= last; ++step) Push(server, step);
  }
  std::vector<float> Values(uint32_t server) {
    return ShardDriver::ValuesIn(chain_.Ask(server, requests_.Pull()));
  }
  proto::TableAsynchrony Report(uint32_t server) {
    return chain_.actor(server).FindShard(kShard)->ReportAsynchrony();
  }
  // The second server becomes the head, and the first one is gone.
  void TakeOver() {
    chain_.Kill(0);
    chain_.SetChain({{1, false}, {2, false}});
    chain_.PublishToAll();
    chain_.Pass(absl::Milliseconds(20));
  }

  ChainDriver chain_;
  // Makes requests; its own loop is not part of the test.
  ShardDriver requests_{TestJob(kAsync, 1)};
};

// The run that nothing disturbs.
class Undisturbed : public GovernorTakeover {
 public:
  void TestBody() override {}
  std::vector<float> Run() {
    chain_.PublishToAll();
    Train(0, 1, 12);
    return Values(0);
  }
};

TEST_F(GovernorTakeover, ANewHeadGoesOnWithTheNumbersOfTheOldOne) {
  chain_.PublishToAll();
  Train(0, 1, kTakeover - 1);
  const proto::TableAsynchrony before = Report(0);
  EXPECT_EQ(before.staleness(), 2);
  TakeOver();
  EXPECT_EQ(Report(1).staleness(), before.staleness());
  EXPECT_EQ(Report(1).updates_above_target(), before.updates_above_target());
  Train(1, kTakeover, 12);
  EXPECT_EQ(Values(1), Undisturbed().Run());
  EXPECT_EQ(Report(1).explicit_momentum(), before.explicit_momentum());
}

TEST_F(GovernorTakeover, AFilledReplicaHasTheNumbers) {
  chain_.SetChain({{0, false}, {2, false}});
  chain_.PublishToAll();
  Train(0, 1, kTakeover - 1);
  chain_.SetChain({{0, false}, {2, false}, {1, true}});
  chain_.PublishToAll();
  chain_.Pass(absl::Milliseconds(20));
  chain_.SetChain({{0, false}, {2, false}, {1, false}});
  chain_.PublishToAll();
  EXPECT_EQ(chain_.Digest(1), chain_.Digest(0));
  TakeOver();
  Train(1, kTakeover, 12);
  EXPECT_EQ(Values(1), Undisturbed().Run());
}

TEST_F(GovernorTakeover, UpdatesInARowAboveTheTargetGoOnBeingCounted) {
  chain_.job.spec().mutable_optimizer()->set_momentum(0.5);
  chain_.PublishToAll();
  Train(0, 1, kTakeover - 1);
  const uint64_t before = Report(0).updates_above_target();
  EXPECT_GT(before, 0u);
  TakeOver();
  EXPECT_EQ(Report(1).updates_above_target(), before);
  Train(1, kTakeover, kTakeover);
  EXPECT_EQ(Report(1).updates_above_target(), before + 1);
}

}  // namespace
}  // namespace covey::server
