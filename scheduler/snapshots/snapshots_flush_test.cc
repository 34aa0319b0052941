// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "scheduler/snapshots/snapshots.h"
#include "scheduler/snapshots/snapshots_fixture.h"

namespace covey::scheduler {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A job that is flushed every 5 seconds.
class SnapshotsFlushTest : public SnapshotsTest {
 protected:
  SnapshotsFlushTest() {
    options_.every = absl::InfiniteDuration();
    options_.flush_every = absl::Seconds(5);
    options_.wall_clock_ahead = absl::Hours(1000);
    state_.job().durability = JobDurability::Parse("flushed:5s").value();
  }

  // The server reports the updates of the first table.
  void Apply(uint64_t updates) {
    proto::ServerLoad load;
    proto::TableAsynchrony& report = *load.add_tables();
    report.set_table(1);
    report.set_updates(updates);
    machine_->OnLoad(NodeId(2), load);
  }
  proto::AtRisk AtRisk() const {
    proto::StatusReply reply;
    machine_->FillStatus(now_, reply);
    return reply.at_risk();
  }
  void Store() {
    StorePart(0);
    StorePart(1);
  }
};

TEST_F(SnapshotsFlushTest, FlushesAtTheIntervalWithoutNews) {
  Start();
  Apply(10);
  Pass(absl::Milliseconds(4900));
  EXPECT_FALSE(is_ordered());
  Pass(absl::Milliseconds(100));
  ASSERT_TRUE(is_ordered());
  Pass(absl::Seconds(2));
  Store();
  EXPECT_EQ(Status().state(), proto::SnapshotStatus::COMPLETE);
  EXPECT_EQ(state_.News(), "");
  Apply(1'000'000);
  // It took half a second from its cut, 1.5 s after the order, and the next one may take 0.75 s.
  Pass(absl::Milliseconds(2200));
  EXPECT_FALSE(is_ordered());
  Pass(absl::Milliseconds(100));
  ASSERT_TRUE(is_ordered());
  Pass(absl::Milliseconds(2200));
  EXPECT_EQ(AtRisk().age_ms(), 5000u) << "no update at risk is older than the interval";
  Store();
  EXPECT_LT(AtRisk().age_ms(), 1000u);
}

TEST_F(SnapshotsFlushTest, FlushesThatTakeLongerThanTheIntervalFollowEachOther) {
  Start();
  Apply(10);
  for (int flush = 1; flush <= 3; ++flush) {
    PassUntilOrdered();
    Pass(absl::Seconds(9));
    Store();
    Apply(1'000'000);
    Pass(absl::Milliseconds(200));
    EXPECT_TRUE(is_ordered());
    Pass(absl::Seconds(9));
    Store();
    Apply(1'000'000);
  }
}

TEST_F(SnapshotsFlushTest, WithoutUpdatesAtRiskNothingIsFlushed) {
  Start();
  Pass(absl::Minutes(1));
  EXPECT_FALSE(is_ordered());
  EXPECT_EQ(machine_->NextTick(), absl::InfiniteFuture());
  Apply(1);
  EXPECT_LE(machine_->NextTick(), now_);
  Pass(absl::Milliseconds(100));
  EXPECT_TRUE(is_ordered());
}

TEST_F(SnapshotsFlushTest, SaysWhatIsAtRisk) {
  Start();
  EXPECT_EQ(AtRisk().durability(), "flushed:5s");
  EXPECT_EQ(AtRisk().snapshot(), "");
  Apply(10);
  EXPECT_EQ(AtRisk().updates(), 10u);
  PassUntilOrdered();
  const std::string flushed = folder();
  Pass(absl::Seconds(2));
  Store();
  uint64_t saved = 0;
  const SmallSnapshot parts = SmallSnapshot::Make(1, 1);
  for (const proto::SnapshotShard& shard : parts.manifest.shards()) {
    if (shard.table() == 1) saved += shard.version();
  }
  ASSERT_GT(saved, 0u);
  EXPECT_EQ(AtRisk().snapshot(), flushed);
  EXPECT_EQ(AtRisk().updates(), 0u);
  Apply(saved + 3);
  EXPECT_EQ(AtRisk().updates(), 3u);
  EXPECT_EQ(AtRisk().age_ms(), 500u) << "cut 1.5 s after the order, and 2 s have passed";
}

TEST_F(SnapshotsFlushTest, FallsBehindWhenFlushesOneAtATimeCannotKeepTheInterval) {
  Start();
  Apply(10);
  PassUntilOrdered();
  Pass(absl::Seconds(4));
  Store();
  EXPECT_EQ(state_.News(), "") << "nobody knew how long it would take";
  Apply(1'000'000);
  PassUntilOrdered();
  EXPECT_EQ(AtRisk().age_ms(), 2600u) << "the next one follows at once, 2.5 s after the cut";
  Pass(absl::Milliseconds(2400));
  EXPECT_FALSE(AtRisk().flush_is_behind());
  Pass(absl::Milliseconds(1600));
  EXPECT_EQ(AtRisk().age_ms(), 6600u);
  EXPECT_TRUE(AtRisk().flush_is_behind()) << "although it has taken 2.5 s only";
  EXPECT_THAT(state_.News(), HasSubstr("behind its interval of 5s"));
  Store();
  EXPECT_TRUE(AtRisk().flush_is_behind()) << "too late";
}

TEST_F(SnapshotsFlushTest, UpdatesAfterAPauseAreYoung) {
  Start();
  Apply(10);
  PassUntilOrdered();
  Pass(absl::Seconds(2));
  Store();
  Pass(absl::Minutes(10));
  ASSERT_FALSE(is_ordered());
  Apply(1'000'000);
  PassUntilOrdered();
  Pass(absl::Seconds(4));
  EXPECT_EQ(state_.News(), "") << "they are at most 4.1 s old";
  Pass(absl::Seconds(2));
  EXPECT_THAT(state_.News(), HasSubstr("behind its interval of 5s"));
}

TEST_F(SnapshotsFlushTest, OnlyFlushesSayHowLongFlushesTake) {
  options_.every = absl::Minutes(2);
  Start();
  // The snapshot as scheduled finds nothing at risk, and takes a minute.
  PassUntilOrdered();
  EXPECT_FALSE(order().is_flush());
  Pass(absl::Minutes(1));
  Store();
  Apply(1'000'000);
  PassUntilOrdered();
  EXPECT_TRUE(order().is_flush());
  Pass(absl::Seconds(2));
  Store();
  Apply(2'000'000);
  Pass(absl::Milliseconds(2200));
  EXPECT_FALSE(is_ordered()) << "half a second from its cut, as one before it";
  Pass(absl::Milliseconds(100));
  EXPECT_TRUE(is_ordered());
}

TEST_F(SnapshotsFlushTest, UpdatesBeforeACutThatWaitedAreSafe) {
  proto::ClusterView& view = *state_.record().mutable_view();
  view.set_feedback_flush_steps(100);
  for (proto::Table& table : *view.mutable_tables()) {
    table.mutable_spec()->set_gradient_format(proto::WIRE_INT8_BLOCK);
    table.mutable_spec()->mutable_contract()->set_kind(proto::Contract::BSP);
    table.clear_contract();
  }
  Start();
  Apply(10);
  PassUntilOrdered();
  ASSERT_EQ(order().groups(0).step(), 100u) << "3.5 s later than planned";
  Pass(absl::Seconds(6));
  Store();
  Apply(1'000'000);
  EXPECT_LE(AtRisk().age_ms(), 1000u);
}

TEST_F(SnapshotsFlushTest, SaysOncePerSpellThatItIsBehind) {
  Start();
  Apply(10);
  PassUntilOrdered();
  Pass(absl::Milliseconds(6500));
  EXPECT_EQ(state_.News(), "") << "the cut lies 1.5 s after the order";
  StorePart(0);
  Pass(absl::Milliseconds(200));
  EXPECT_THAT(state_.News(), AllOf(HasSubstr("behind its interval of 5s: 10 updates"),
                                   HasSubstr("of 3 shards are stored")));
  EXPECT_TRUE(AtRisk().flush_is_behind());
  Pass(absl::Seconds(10));
  StorePart(1);
  EXPECT_TRUE(AtRisk().flush_is_behind()) << "too late";
  Apply(1'000'000);
  PassUntilOrdered();
  Pass(absl::Seconds(8));
  EXPECT_EQ(state_.News(), "") << "the same spell";
  Store();
  for (const uint64_t updates : {2'000'000, 3'000'000}) {
    EXPECT_TRUE(AtRisk().flush_is_behind()) << "updates since the slow one's cut are at risk";
    Apply(updates);
    PassUntilOrdered();
    Pass(absl::Seconds(2));
    Store();
  }
  EXPECT_FALSE(AtRisk().flush_is_behind());
  Apply(4'000'000);
  PassUntilOrdered();
  Pass(absl::Seconds(7));
  EXPECT_THAT(state_.News(), HasSubstr("behind")) << "the next spell";
}

}  // namespace
}  // namespace covey::scheduler
