// SPDX-License-Identifier: Apache-2.0
#include "scheduler/topology/topology_survey.h"

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/cluster/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/state/cluster_state_fixture.h"

namespace covey::scheduler {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kFirst = 10;
constexpr double kNear = 0.0002;
constexpr double kFar = 0.002;

// Workers that measure what the test says.
class TopologySurveyTest : public ::testing::Test {
 protected:
  TopologySurveyTest() { survey_.emplace(state_); }

  void Add(const std::string& labels) {
    Transaction change(state_);
    proto::Node& node = *change.EditView().add_nodes();
    node.set_id(kFirst + next_);
    node.set_role(proto::WORKER);
    node.set_state(proto::Node::ALIVE);
    node.set_rank(next_);
    node.set_name(absl::StrCat("worker-", next_++));
    node.set_labels(labels);
    change.Add(WorkerStandsBy{.worker = node.name()});
    change.Commit();
    state_.News();
  }
  void AddHosts(size_t count) {
    for (size_t i = 0; i < count; ++i) Add(absl::StrCat("z//host-", next_));
  }

  proto::ProbeOrder Beat(uint64_t node, const proto::ProbeReport& report = {}) {
    proto::HeartbeatRequest request;
    if (report.order() != 0) *request.mutable_probes() = report;
    survey_->OnHeartbeat(now_, NodeId(node), request);
    proto::HeartbeatReply reply;
    survey_->Tell(NodeId(node), reply);
    return reply.probe();
  }
  static proto::ProbedLink LinkTo(uint64_t node, double seconds) {
    proto::ProbedLink link;
    link.set_node(node);
    link.set_round_trip_seconds(seconds);
    return link;
  }
  // Even workers are in one rack, odd ones in another.
  static double ByParity(uint64_t from, uint64_t to) { return from % 2 == to % 2 ? kNear : kFar; }
  using Distance = std::function<double(uint64_t from, uint64_t to)>;
  // The workers from `first` on measure what they are asked for.
  void MeasureAll(const Distance& distance = ByParity, uint64_t first = kFirst) {
    std::vector<proto::ProbeOrder> orders;
    for (uint64_t node = first; node < kFirst + next_; ++node) orders.push_back(Beat(node));
    for (uint64_t node = first; node < kFirst + next_; ++node) {
      const proto::ProbeOrder& order = orders[node - first];
      proto::ProbeReport report;
      report.set_order(order.order());
      for (const uint64_t peer : order.peers()) {
        *report.add_links() = LinkTo(peer, distance(node, peer));
      }
      EXPECT_EQ(Beat(node, report).order(), 0u) << "asked although it has reported";
    }
  }
  bool Tick(absl::Duration later = absl::Milliseconds(500)) {
    now_ += later;
    return survey_->Tick(now_);
  }
  void FormGroup(uint64_t first, uint64_t members) {
    Transaction change(state_);
    proto::Group& group = *change.EditView().add_groups();
    group.set_id(1);
    group.set_state(proto::Group::ACTIVE);
    for (uint64_t i = 0; i < members; ++i) group.add_members(first + i);
    change.Add(FirstGroupsFormed{.groups = 1});
    change.Commit();
    state_.News();
  }
  std::vector<std::string> Labels() const {
    std::vector<std::string> labels;
    for (const proto::Node& node : state_.view().nodes()) labels.push_back(node.labels());
    return labels;
  }

  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  uint32_t next_ = 0;
  TestState state_{{.name = "job", .workers_per_group = 4, .plans_groups = true}};
  std::optional<TopologySurvey> survey_;
};

TEST_F(TopologySurveyTest, ANewcomerMeasuresThoseThatAreThere) {
  AddHosts(1);
  EXPECT_EQ(Beat(kFirst).order(), 0u) << "there is nobody";
  AddHosts(2);
  const proto::ProbeOrder order = Beat(kFirst + 1);
  EXPECT_THAT(order.peers(), ElementsAre(kFirst + 2, kFirst));
  EXPECT_EQ(Beat(kFirst).order(), 0u);
  AddHosts(1);
  EXPECT_EQ(Beat(kFirst + 1).SerializeAsString(), order.SerializeAsString())
      << "it is asked for the same until it reports";
  EXPECT_GT(Beat(kFirst + 2).order(), order.order());
}

TEST_F(TopologySurveyTest, InALargeJobItMeasuresNeighborsAndSomeOthers) {
  AddHosts(kProbedPeersMax + 1);
  EXPECT_THAT(Beat(kFirst).peers(), SizeIs(kProbedPeersMax));
  AddHosts(100);
  std::set<uint64_t> far;
  for (uint64_t node = kFirst + 20; node < kFirst + 60; ++node) {
    const proto::ProbeOrder order = Beat(node);
    const std::set<uint64_t> peers(order.peers().begin(), order.peers().end());
    ASSERT_THAT(peers, SizeIs(kProbedPeersMax)) << "each once";
    EXPECT_FALSE(peers.contains(node));
    for (const int by : {-4, -3, -2, -1, 1, 2, 3, 4}) EXPECT_TRUE(peers.contains(node + by)) << by;
    for (const uint64_t peer : peers) {
      if (peer + 4 < node || peer > node + 4) far.insert(peer);
    }
  }
  EXPECT_GT(far.size(), 80u) << "not always the same ones";
}

TEST_F(TopologySurveyTest, ShuffledRacksAreNamedBeforeGroupsForm) {
  AddHosts(4);
  EXPECT_FALSE(survey_->settled(now_));
  Tick();
  EXPECT_FALSE(survey_->settled(now_));
  MeasureAll();
  EXPECT_TRUE(survey_->settled(now_));
  EXPECT_THAT(Labels(), Each(HasSubstr("z//host-")));
  const uint64_t before = state_.epoch().value();
  EXPECT_TRUE(Tick());
  EXPECT_THAT(Labels(), ElementsAre("z/measured-0/host-0", "z/measured-1/host-1",
                                    "z/measured-0/host-2", "z/measured-1/host-3"));
  for (const proto::Node& node : state_.view().nodes()) EXPECT_TRUE(node.rack_is_measured());
  EXPECT_EQ(state_.epoch().value(), before + 1);
  EXPECT_EQ(
      state_.News(),
      "2 racks measured: worker-0, worker-2 | worker-1, worker-3; 0.2 ms inside, 2 ms between");
  EXPECT_FALSE(Tick());
  EXPECT_EQ(state_.epoch().value(), before + 1);
}

TEST_F(TopologySurveyTest, RacksThatAreNearAreToldByTheirUplinks) {
  AddHosts(4);
  const auto rate = [](uint64_t from, uint64_t to) { return from % 2 == to % 2 ? 50e6 : 5e6; };
  std::vector<proto::ProbeOrder> orders;
  for (uint64_t node = kFirst; node < kFirst + 4; ++node) orders.push_back(Beat(node));
  for (uint64_t node = kFirst; node < kFirst + 4; ++node) {
    proto::ProbeReport report;
    report.set_order(orders[node - kFirst].order());
    for (const uint64_t peer : orders[node - kFirst].peers()) {
      proto::ProbedLink& link = *report.add_links();
      link = LinkTo(peer, kNear);
      link.set_bytes_per_second(rate(node, peer));
    }
    Beat(node, report);
  }
  EXPECT_TRUE(Tick());
  EXPECT_THAT(state_.News(), HasSubstr("2 racks measured: worker-0, worker-2 | worker-1, worker-3; "
                                       "21 ms inside, 2.1e+02 ms between, with 1.05 MB"));
  EXPECT_THAT(Labels(), ElementsAre("z/measured-0/host-0", "z/measured-1/host-1",
                                    "z/measured-0/host-2", "z/measured-1/host-3"));
}

TEST_F(TopologySurveyTest, WhatPeopleSayStays) {
  Add("zone/rack/host-0");
  AddHosts(4);
  Add("zone//host-5/gpu0");
  MeasureAll();
  Tick();
  EXPECT_THAT(Labels(), ElementsAre("zone/rack/host-0", "z/measured-0/host-1",
                                    "z/measured-1/host-2", "z/measured-0/host-3",
                                    "z/measured-1/host-4", "zone/measured-0/host-5/gpu0"));
  EXPECT_FALSE(state_.view().nodes(0).rack_is_measured());
}

TEST_F(TopologySurveyTest, ANameThatPeopleGaveIsNotGivenAgain) {
  Add("z/measured-0/host-0");
  AddHosts(4);
  MeasureAll();
  Tick();
  EXPECT_THAT(Labels(),
              ElementsAre("z/measured-0/host-0", "z/measured-1/host-1", "z/measured-2/host-2",
                          "z/measured-1/host-3", "z/measured-2/host-4"));
}

TEST_F(TopologySurveyTest, WithoutAGapNothingIsNamed) {
  AddHosts(6);
  MeasureAll([](uint64_t, uint64_t) { return kNear; });
  EXPECT_TRUE(Tick()) << "what links cost is known";
  EXPECT_THAT(Labels(), Each(HasSubstr("z//host-")));
  EXPECT_EQ(state_.News(), "");
}

TEST_F(TopologySurveyTest, AWorkerThatDoesNotReportIsWaitedForOnlySoLong) {
  AddHosts(5);
  for (uint64_t node = kFirst; node < kFirst + 5; ++node) Beat(node);
  now_ += absl::Seconds(1);
  AddHosts(1);
  EXPECT_FALSE(survey_->settled(now_ + absl::Hours(1))) << "it has just come";
  Tick();
  const absl::Time came = now_;
  EXPECT_FALSE(survey_->settled(came + TopologySurvey::kReportMax - absl::Milliseconds(1)));
  EXPECT_TRUE(survey_->settled(came + TopologySurvey::kReportMax));
}

TEST_F(TopologySurveyTest, ALateComerGetsTheNameOfItsRack) {
  AddHosts(4);
  MeasureAll();
  Tick();
  FormGroup(kFirst, 4);
  AddHosts(1);
  MeasureAll(ByParity, kFirst + 4);
  Tick();
  EXPECT_EQ(Labels().back(), "z/measured-0/host-4");
  EXPECT_THAT(state_.News(), HasSubstr("worker-0, worker-2, worker-4 | worker-1, worker-3"));
}

// They read it from different views, and must agree on where all members are.
TEST_F(TopologySurveyTest, MembersOfAGroupAreNotNamedNorWorkersBesideThem) {
  AddHosts(4);
  MeasureAll();
  FormGroup(kFirst, 2);
  Tick();
  EXPECT_THAT(Labels(), Each(HasSubstr("z//host-")));
  EXPECT_EQ(state_.News(), "");
}

TEST_F(TopologySurveyTest, AMemberThatReportsLateKeepsItsLabels) {
  AddHosts(4);
  MeasureAll();
  Tick();
  AddHosts(1);
  FormGroup(kFirst, 5);
  MeasureAll(ByParity, kFirst + 4);
  Tick();
  EXPECT_EQ(Labels().back(), "z//host-4");
}

TEST_F(TopologySurveyTest, AJobWithGivenGroupsIsNotMeasured) {
  state_.job().plans_groups = false;
  AddHosts(4);
  EXPECT_TRUE(survey_->settled(now_));
  for (uint64_t node = kFirst; node < kFirst + 4; ++node) EXPECT_EQ(Beat(node).order(), 0u);
  EXPECT_FALSE(Tick());
  EXPECT_EQ(survey_->measured_links(), 0u);
}

TEST_F(TopologySurveyTest, ReportsThatMakeNoSenseCountForNothing) {
  AddHosts(3);
  Add("");
  const proto::ProbeOrder order = Beat(kFirst);
  proto::ProbeReport report;
  report.set_order(order.order() + 1);
  *report.add_links() = LinkTo(kFirst + 1, kNear);
  EXPECT_EQ(Beat(kFirst, report).order(), order.order()) << "of another order";
  report.clear_links();
  report.set_order(order.order());
  *report.add_links() = LinkTo(kFirst, kNear);
  *report.add_links() = LinkTo(kFirst + 50, kNear);
  for (const double wrong : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    *report.add_links() = LinkTo(kFirst + 1, wrong);
  }
  for (size_t i = 0; i <= kProbedPeersMax; ++i) *report.add_links() = LinkTo(kFirst + 2, kNear);
  report.mutable_links(static_cast<int>(kProbedPeersMax))->set_node(kFirst + 3);
  EXPECT_EQ(Beat(kFirst, report).order(), 0u);
  EXPECT_EQ(survey_->measured_links(), 1u);
  *report.mutable_links(0) = LinkTo(kFirst + 1, kNear);
  Beat(kFirst, report);
  EXPECT_EQ(survey_->measured_links(), 1u) << "a second report";
}

TEST_F(TopologySurveyTest, WhatWasMeasuredGoesWithAWorker) {
  AddHosts(4);
  MeasureAll();
  EXPECT_EQ(survey_->measured_links(), 6u);
  Transaction change(state_);
  change.EditView().mutable_nodes(0)->set_state(proto::Node::DEAD);
  change.Add(NodeDied{.description = "worker-0"});
  change.Commit();
  survey_->OnDeparture(NodeId(kFirst));
  EXPECT_EQ(survey_->measured_links(), 3u);
  EXPECT_TRUE(survey_->settled(now_));
}

TEST_F(TopologySurveyTest, AfterARestartAllAreAskedAgainAndLabelsStay) {
  AddHosts(4);
  MeasureAll();
  Tick();
  const std::vector<std::string> before = Labels();
  FormGroup(kFirst, 4);
  survey_.emplace(state_);
  // Now they would be found in other racks.
  MeasureAll([](uint64_t from, uint64_t to) { return from / 12 == to / 12 ? kNear : kFar; });
  EXPECT_TRUE(Tick());
  EXPECT_EQ(Labels(), before);
  EXPECT_EQ(survey_->measured_links(), 6u);
}

TEST_F(TopologySurveyTest, MoreWorkersThanCanBeClusteredKeepTheirLabels) {
  AddHosts(TopologySurvey::kClusteredMax + 1);
  MeasureAll();
  EXPECT_TRUE(Tick());
  EXPECT_THAT(Labels(), Each(HasSubstr("z//host-")));
}

TEST_F(TopologySurveyTest, AsManyAsCanBeAreClustered) {
  AddHosts(TopologySurvey::kClusteredMax);
  MeasureAll();
  Tick();
  EXPECT_EQ(Labels()[6], "z/measured-0/host-6");
  EXPECT_EQ(Labels()[201], "z/measured-1/host-201");
}

TEST_F(TopologySurveyTest, CostsAreFittedByLevel) {
  AddHosts(4);
  MeasureAll([](uint64_t from, uint64_t to) { return ByParity(from, to); });
  EXPECT_TRUE(Tick());
  EXPECT_NEAR(survey_->Costs().at(Level::kRack).latency_seconds, kNear / 2, 1e-9);
  EXPECT_NEAR(survey_->Costs().at(Level::kCluster).latency_seconds, kFar / 2, 1e-9);
  Add("z/measured-0/host-4");
  const proto::ProbeOrder order = Beat(kFirst + 4);
  proto::ProbeReport report;
  report.set_order(order.order());
  for (const uint64_t peer : order.peers()) {
    proto::ProbedLink& link = *report.add_links();
    link = LinkTo(peer, ByParity(kFirst + 4, peer));
    link.set_bytes_per_second(peer % 2 == 0 ? 1e9 : 1e8);
  }
  Beat(kFirst + 4, report);
  EXPECT_TRUE(Tick());
  EXPECT_NEAR(survey_->Costs().at(Level::kRack).bytes_per_second, 1e9, 1e3);
  EXPECT_NEAR(survey_->Costs().at(Level::kCluster).bytes_per_second, 1e8, 1e3);
}

}  // namespace
}  // namespace covey::scheduler
