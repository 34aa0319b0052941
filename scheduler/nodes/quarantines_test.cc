// SPDX-License-Identifier: Apache-2.0
#include "scheduler/nodes/quarantines.h"

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/cluster/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/state/cluster_state_fixture.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr NodeId kServer(2);
constexpr NodeId kOtherServer(3);
constexpr uint64_t kClient = 4;

// Servers 2 and 3, client-0 (node 4), and groups 1 to 3. Table 1, 'w', has a gate and a shard on
// each server.
class QuarantinesTest : public ::testing::Test {
 protected:
  QuarantinesTest() {
    AddNode(proto::SERVER, 0);
    AddNode(proto::SERVER, 1);
    AddNode(proto::CLIENT, 0);
    for (uint32_t id = 1; id <= 3; ++id) {
      proto::Group& group = *view().add_groups();
      group.set_id(id);
      group.set_state(proto::Group::ACTIVE);
    }
    proto::Table& table = *view().add_tables();
    table.set_id(1);
    table.mutable_spec()->set_name("w");
    gate().set_factor(20);
    gate().set_quarantine_after(8);
    table.add_shards()->add_chain()->set_node(kServer.value());
    table.add_shards()->add_chain()->set_node(kOtherServer.value());
    table.mutable_shards(0)->add_chain()->set_node(kOtherServer.value());
  }

  proto::ClusterView& view() { return *state_.mutable_view(); }
  proto::NormGate& gate() { return *view().mutable_tables(0)->mutable_spec()->mutable_norm_gate(); }
  void AddNode(proto::Role role, uint32_t rank) {
    proto::Node& node = *view().add_nodes();
    node.set_id(static_cast<uint64_t>(view().nodes_size()) + 1);
    node.set_role(role);
    node.set_rank(rank);
    node.set_name(NodeName(role, rank));
    node.set_state(proto::Node::ALIVE);
  }
  absl::StatusOr<Epoch> Ask(const std::string& producer, bool release = false,
                            const std::string& reason = "") {
    proto::QuarantineRequest request;
    request.set_producer(producer);
    request.set_release(release);
    request.set_reason(reason);
    return quarantines_.OnRequest(request, "asked by a test");
  }
  absl::StatusOr<Epoch> Release(const std::string& producer) {
    return Ask(producer, /*release=*/true);
  }
  // Of group 3 on shard 0, with norms far above those of the others.
  static proto::GatedProducer Wild(uint64_t in_row) {
    proto::GatedProducer report;
    report.set_is_group(true);
    report.set_id(3);
    report.set_table(1);
    report.set_pushes(100 + in_row);
    report.set_beyond(in_row);
    report.set_beyond_in_row(in_row);
    report.set_usual(8123);
    report.set_usual_of_others(0.1234);
    return report;
  }
  // A heartbeat of the head of the shard, which knows the newest view.
  void Report(const proto::GatedProducer& report) {
    ReportOf(report.shard() == 0 ? kServer : kOtherServer, state_.epoch(), report);
  }
  void ReportOf(NodeId server, Epoch known, const proto::GatedProducer& report) {
    proto::ServerLoad load;
    *load.add_gated() = report;
    quarantines_.OnHeartbeat(now_, server, known, load);
  }
  // The names of those in quarantine.
  std::vector<std::string> Quarantined() {
    std::vector<std::string> names;
    for (const proto::QuarantinedProducer& each : state_.view().quarantined()) {
      names.push_back(absl::StrCat(each.is_group() ? "group-" : "node-", each.id()));
    }
    return names;
  }
  // Group 3 is in quarantine, and released; servers have reported since.
  void ReleaseAndSettle(uint64_t in_row) {
    Report(Wild(in_row));
    ASSERT_THAT(Quarantined(), ElementsAre("group-3"));
    ASSERT_TRUE(Release("group-3").ok());
    Report(Wild(in_row));
    now_ += Quarantines::kSettled;
    state_.News();
  }

  TestState state_;
  Quarantines quarantines_{state_};
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(QuarantinesTest, AProducerIsQuarantinedOnceAndReleasedByRequest) {
  const auto since = Ask("group-2");
  ASSERT_TRUE(since.ok()) << since.status();
  EXPECT_EQ(*since, Epoch(1));
  EXPECT_EQ(state_.News(), "group-2 quarantined: by request, asked by a test");
  ASSERT_EQ(state_.view().quarantined_size(), 1);
  const proto::QuarantinedProducer& entry = state_.view().quarantined(0);
  EXPECT_TRUE(entry.is_group());
  EXPECT_EQ(entry.id(), 2u);
  EXPECT_EQ(entry.epoch(), 1u);
  EXPECT_EQ(entry.reason(), "by request, asked by a test");
  ASSERT_TRUE(Ask("client-0", false, "NaN in its data").ok());
  EXPECT_EQ(state_.News(), "client-0 quarantined: NaN in its data, asked by a test");
  const auto again = Ask("group-2");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, Epoch(1)) << "since then";
  EXPECT_EQ(state_.News(), "");
  EXPECT_EQ(state_.view().epoch(), 2u);
  const auto released = Release("group-2");
  ASSERT_TRUE(released.ok()) << released.status();
  EXPECT_EQ(*released, Epoch(3));
  EXPECT_EQ(state_.News(), "group-2 released from quarantine: asked by a test");
  EXPECT_THAT(Quarantined(), ElementsAre("node-4"));
}

TEST_F(QuarantinesTest, TheListIsInOrderOfKindAndId) {
  for (const char* name : {"group-3", "server-1", "group-1", "client-0"}) {
    ASSERT_TRUE(Ask(name).ok()) << name;
  }
  EXPECT_THAT(Quarantined(), ElementsAre("node-3", "node-4", "group-1", "group-3"));
}

TEST_F(QuarantinesTest, AnUnknownProducerIsRefusedWithTheKnownOnes) {
  view().mutable_groups(1)->set_state(proto::Group::BROKEN);
  AddNode(proto::CLIENT, 1);
  view().mutable_nodes(3)->set_state(proto::Node::DEAD);
  for (const char* name : {"group-2", "group-9", "group-", "group-01", "client-1", "3", ""}) {
    const absl::Status status = Ask(name).status();
    EXPECT_TRUE(absl::IsNotFound(status)) << name << " " << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("groups and clients are group-1, group-3, client-0; give one"));
  }
  EXPECT_EQ(state_.view().epoch(), 0u);
  view().clear_groups();
  view().clear_nodes();
  EXPECT_THAT(std::string(Ask("group-1").status().message()),
              HasSubstr("no group and no client has joined yet, see covey status"));
}

TEST_F(QuarantinesTest, OnlyAQuarantinedProducerIsReleased) {
  const absl::Status none = Release("group-1").status();
  EXPECT_TRUE(absl::IsNotFound(none)) << none;
  EXPECT_EQ(none.message(),
            "release 'group-1': it is not quarantined; no producer is, so there is nothing to "
            "release");
  ASSERT_TRUE(Ask("group-3").ok());
  const absl::Status other = Release("group-1").status();
  EXPECT_TRUE(absl::IsNotFound(other));
  EXPECT_THAT(std::string(other.message()), HasSubstr("these are: group-3; give one"));
}

TEST_F(QuarantinesTest, ReasonsAndTheListAreLimited) {
  EXPECT_TRUE(
      absl::IsInvalidArgument(Ask("group-1", false, std::string(kNameBytesMax + 1, 'x')).status()));
  for (size_t i = 0; i < kQuarantinedMax; ++i) {
    view().add_quarantined()->set_id(100 + i);
  }
  const absl::Status full = Ask("group-1").status();
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(std::string(full.message()), AllOf(HasSubstr("1024"), HasSubstr("release some")));
  Report(Wild(8));
  EXPECT_EQ(state_.view().quarantined_size(), static_cast<int>(kQuarantinedMax));
}

TEST_F(QuarantinesTest, ThoseThatHaveEndedLeaveTheView) {
  for (const char* name : {"group-1", "group-3", "client-0"}) ASSERT_TRUE(Ask(name).ok());
  quarantines_.Tick();
  EXPECT_EQ(state_.view().epoch(), 3u) << "none has ended";
  state_.News();
  view().mutable_groups(0)->set_state(proto::Group::DONE);
  view().mutable_nodes(2)->set_state(proto::Node::LEFT);
  quarantines_.Tick();
  EXPECT_EQ(state_.News(), "client-0, group-1 have ended in quarantine");
  EXPECT_THAT(Quarantined(), ElementsAre("group-3"));
  EXPECT_EQ(state_.view().epoch(), 4u);
}

TEST_F(QuarantinesTest, PushesInARowBeyondTheGateQuarantine) {
  Report(Wild(7));
  EXPECT_THAT(Quarantined(), ElementsAre());
  Report(Wild(8));
  EXPECT_THAT(Quarantined(), ElementsAre("group-3"));
  EXPECT_EQ(state_.News(),
            "group-3 quarantined: 8 pushes in a row beyond the gate of table 'w', shard 0: norms "
            "of about 8.1e+03, those of others about 0.12");
  Report(Wild(9));
  EXPECT_EQ(state_.News(), "") << "it is quarantined already";
}

TEST_F(QuarantinesTest, APlainClientIsQuarantinedByItsNode) {
  proto::GatedProducer report = Wild(8);
  report.set_is_group(false);
  report.set_id(kClient);
  report.set_shard(1);
  Report(report);
  EXPECT_THAT(Quarantined(), ElementsAre("node-4"));
  EXPECT_THAT(state_.News(), HasSubstr("client-0 quarantined: 8 pushes in a row"));
}

TEST_F(QuarantinesTest, NormsThatGrowTogetherAreNoEvidence) {
  proto::GatedProducer report = Wild(1000);
  report.set_usual_of_others(0);
  Report(report);  // nobody else pushes
  report.set_usual_of_others(report.usual() / 20);
  Report(report);
  report.set_usual_of_others(std::numeric_limits<double>::quiet_NaN());
  Report(report);
  report = Wild(1000);
  report.set_usual(std::numeric_limits<double>::quiet_NaN());
  Report(report);
  EXPECT_THAT(Quarantined(), ElementsAre());
}

TEST_F(QuarantinesTest, ReportsThatFitNothingAreIgnored) {
  ReportOf(kOtherServer, state_.epoch(), Wild(8));  // not the head of this shard
  proto::GatedProducer report = Wild(8);
  report.set_shard(2);
  Report(report);
  report = Wild(8);
  report.set_table(7);
  Report(report);
  report = Wild(8);
  report.set_id((uint64_t{1} << 32) + 3);
  Report(report);
  report.set_is_group(false);
  Report(report);
  view().mutable_groups(2)->set_state(proto::Group::BROKEN);
  Report(Wild(8));
  EXPECT_THAT(Quarantined(), ElementsAre());
  view().mutable_groups(2)->set_state(proto::Group::ACTIVE);
  gate().set_quarantine_after(0);
  Report(Wild(8));
  view().mutable_tables(0)->mutable_spec()->clear_norm_gate();
  Report(Wild(8));
  EXPECT_THAT(Quarantined(), ElementsAre());
  EXPECT_EQ(state_.view().epoch(), 0u);
}

TEST_F(QuarantinesTest, AServerTellsOfALimitedNumber) {
  proto::ServerLoad load;
  for (size_t i = 0; i < kGatedProducersToldMax; ++i) *load.add_gated() = Wild(1);
  *load.add_gated() = Wild(8);
  quarantines_.OnHeartbeat(now_, kServer, state_.epoch(), load);
  EXPECT_THAT(Quarantined(), ElementsAre());
}

TEST_F(QuarantinesTest, ReportsFromBeforeAReleaseAreNoEvidence) {
  Report(Wild(8));
  const Epoch before = state_.epoch();
  ASSERT_TRUE(Release("group-3").ok());
  // However late it comes.
  now_ += absl::Minutes(1);
  ReportOf(kServer, before, Wild(500));
  EXPECT_THAT(Quarantined(), ElementsAre());
  // The server has the view, and its data loops have not told it of their last pushes yet.
  Report(Wild(500));
  now_ += Quarantines::kSettled / 2;
  Report(Wild(700));
  EXPECT_THAT(Quarantined(), ElementsAre());
  now_ += Quarantines::kSettled / 2;
  Report(Wild(707));
  EXPECT_THAT(Quarantined(), ElementsAre());
  state_.News();
  Report(Wild(708));
  EXPECT_THAT(Quarantined(), ElementsAre("group-3"));
  EXPECT_THAT(state_.News(), HasSubstr("8 pushes in a row"));
}

TEST_F(QuarantinesTest, ARowThatEndedAfterAReleaseIsForgotten) {
  ReleaseAndSettle(500);
  Report(Wild(2));  // within the gate, and then beyond again
  Report(Wild(7));
  EXPECT_THAT(Quarantined(), ElementsAre());
  Report(Wild(8));
  EXPECT_THAT(Quarantined(), ElementsAre("group-3"));
}

TEST_F(QuarantinesTest, EachShardCountsByItselfAfterARelease) {
  ReleaseAndSettle(8);
  proto::GatedProducer other = Wild(300);
  other.set_shard(1);
  Report(other);  // its server has been told late
  EXPECT_THAT(Quarantined(), ElementsAre());
  now_ += Quarantines::kSettled;
  other.set_beyond_in_row(307);
  Report(other);
  Report(Wild(15));
  EXPECT_THAT(Quarantined(), ElementsAre());
  other.set_beyond_in_row(308);
  Report(other);
  EXPECT_THAT(state_.News(), HasSubstr("shard 1"));
}

TEST_F(QuarantinesTest, ASecondReleaseBeginsAgain) {
  ReleaseAndSettle(8);
  Report(Wild(16));
  ASSERT_THAT(Quarantined(), ElementsAre("group-3"));
  ASSERT_TRUE(Release("group-3").ok());
  Report(Wild(90));
  now_ += Quarantines::kSettled;
  Report(Wild(97));
  EXPECT_THAT(Quarantined(), ElementsAre());
  Report(Wild(98));
  EXPECT_THAT(Quarantined(), ElementsAre("group-3"));
}

TEST_F(QuarantinesTest, AReleaseConcernsOneProducer) {
  ReleaseAndSettle(8);
  proto::GatedProducer other = Wild(8);
  other.set_id(1);
  Report(other);
  EXPECT_THAT(Quarantined(), ElementsAre("group-1"));
}

// Whether a producer was released before the restart is not in the log.
TEST_F(QuarantinesTest, AfterARestartAllCountsBeginAgain) {
  ASSERT_TRUE(Ask("group-1").ok());
  state_.record().set_index(7);
  Quarantines restarted(state_);
  restarted.Start();
  const auto report = [&](uint64_t in_row) {
    proto::ServerLoad load;
    *load.add_gated() = Wild(in_row);
    restarted.OnHeartbeat(now_, kServer, state_.epoch(), load);
  };
  report(100);
  now_ += Quarantines::kSettled;
  report(107);
  EXPECT_THAT(Quarantined(), ElementsAre("group-1")) << "the view was recovered";
  report(108);
  EXPECT_THAT(Quarantined(), ElementsAre("group-1", "group-3"));
}

}  // namespace
}  // namespace covey::scheduler
