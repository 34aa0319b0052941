// SPDX-License-Identifier: Apache-2.0
#include "scheduler/groups/group_replans.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/cluster/view.h"
#include "common/contract/contract.h"
#include "common/table/definition.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/nodes/membership.h"
#include "scheduler/state/cluster_state_fixture.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);
constexpr double kBatch = 10;

JobSpec Job() {
  return {.name = "job", .servers = 1, .groups = 1, .workers_per_group = 4, .plans_groups = true};
}

// One server (node 2), four workers (nodes 3 to 6) and a table.
class GroupReplansTest : public ::testing::Test {
 protected:
  explicit GroupReplansTest(const JobSpec& job = Job()) : state_(job) {
    membership_.Start(kStart);
    measurements_.Start(kStart);
    Register(proto::SERVER);
    for (int i = 0; i < 4; ++i) Register(proto::WORKER, i < 2 ? "z/a" : "z/b");
    AddTable("buffered");
    state_.TakeTexts();
  }
  ~GroupReplansTest() override {
    const auto made = ClusterView::Make(state_.view());
    EXPECT_TRUE(made.ok()) << made.status();
  }

  NodeId Register(proto::Role role, const std::string& labels = "") {
    proto::RegisterRequest request;
    request.set_job_name("job");
    request.set_role(role);
    request.set_rank(-1);
    request.set_labels(labels);
    if (role == proto::SERVER) {
      request.add_endpoints("");
      request.add_endpoints("tcp://127.0.0.1:1");
    }
    const auto registration = membership_.Register(now_, request, Incarnation(++incarnation_));
    EXPECT_TRUE(registration.ok()) << registration.status();
    membership_.OnRegistrationAnswered(now_, registration->node);
    return registration->node;
  }
  void AddTable(const std::string& contract) {
    proto::Table& table = *state_.mutable_view()->add_tables();
    table.set_id(static_cast<uint32_t>(state_.view().tables_size()));
    table.mutable_spec()->set_name(absl::StrCat("w", table.id()));
    table.mutable_spec()->set_data_type(proto::FLOAT32);
    table.mutable_spec()->add_shape(1000);
    table.mutable_spec()->mutable_optimizer()->set_kind(proto::Optimizer::SGD);
    table.mutable_spec()->mutable_learning_rate()->set_base(0.1);
    SetContract(contract, table);
    *table.mutable_spec()->mutable_contract() = table.contract();
    EXPECT_EQ(TableDefinition::InForce(table).status(), absl::OkStatus());
    proto::Shard& shard = *table.add_shards();
    shard.set_element_count(1000);
    proto::Replica& head = *shard.add_chain();
    head.set_node(2);
    head.set_loop(1);
  }
  static void SetContract(const std::string& contract, proto::Table& table) {
    *table.mutable_contract() = ContractToProto(*ParseContract(contract));
  }
  // Of a member: an even part, or in proportion to its speed.
  double SamplesOf(const proto::Group& group, uint64_t member) const {
    const double all = group_batch_ > 0 ? group_batch_ : kBatch * group.members_size();
    if (!follows_shares_) return all / group.members_size();
    double speeds = 0;
    for (const uint64_t each : group.members()) speeds += speeds_.at(each);
    return all * speeds_.at(member) / speeds;
  }
  // The worker has done another step: at its own speed, and then waited for the group.
  void Report(const proto::Group& group, uint64_t node, double group_step_seconds) {
    proto::HeartbeatRequest beat;
    proto::Progress& progress = *beat.mutable_progress();
    progress.set_step(++steps_);
    const double samples = SamplesOf(group, node);
    const double seconds = samples / speeds_.at(node);
    progress.set_group(group.id());
    progress.set_samples_per_step(samples);
    progress.set_compute_seconds(seconds);
    // Two measurements are never equal.
    progress.set_wait_seconds(group_step_seconds - seconds + 1e-9 * steps_);
    progress.set_samples_per_second(samples / group_step_seconds);
    progress.set_follows_shares(follows_shares_);
    if (is_away_.contains(node)) beat.mutable_away()->set_left_ms(60'000);
    if (is_away_.contains(node)) beat.mutable_away()->set_reason("evaluation");
    membership_.OnHeartbeat(now_, NodeId(node), beat);
    away_.OnHeartbeat(now_, NodeId(node), beat);
    measurements_.OnHeartbeat(now_, NodeId(node), progress);
  }
  // No worker sends a heartbeat.
  void Stand(absl::Duration duration) {
    for (const absl::Time end = now_ + duration; now_ < end;) {
      now_ += absl::Milliseconds(500);
      replans_.Tick(now_);
      for (std::string& text : state_.TakeTexts()) news_.push_back(std::move(text));
    }
  }
  // Each group steps at the pace of its slowest member; several groups take `friction_` times as
  // long, and one group `drag_` times.
  void Run(absl::Duration duration) {
    for (const absl::Time end = now_ + duration; now_ < end;) {
      now_ += absl::Milliseconds(500);
      groups_.Tick(now_);
      const bool reports = now_ - reported_at_ >= report_every_;
      if (reports) reported_at_ = now_;
      for (const proto::Group& group : state_.view().groups()) {
        if (group.state() != proto::Group::ACTIVE || !reports) continue;
        double step = 0;
        for (const uint64_t member : group.members()) {
          step = std::max(step, SamplesOf(group, member) / speeds_.at(member));
        }
        step *= CountGroups() > 1 ? friction_ : drag_;
        for (const uint64_t member : group.members()) {
          const proto::Node& node = *FindNode(state_.view(), NodeId(member));
          if (node.state() == proto::Node::ALIVE) Report(group, member, step);
        }
      }
      replans_.Tick(now_);
      for (std::string& text : state_.TakeTexts()) news_.push_back(std::move(text));
    }
  }
  size_t CountGroups() const { return Groups().size(); }
  // The members of ACTIVE groups.
  std::vector<std::vector<uint64_t>> Groups() const {
    std::vector<std::vector<uint64_t>> groups;
    for (const proto::Group& group : state_.view().groups()) {
      if (group.state() != proto::Group::ACTIVE) continue;
      groups.emplace_back(group.members().begin(), group.members().end());
    }
    return groups;
  }

  absl::Time now_ = kStart;
  uint64_t incarnation_ = 10;
  uint64_t steps_ = 0;
  std::map<uint64_t, double> speeds_ = {{3, 100}, {4, 20}, {5, 100}, {6, 20}, {7, 100}, {8, 20}};
  double friction_ = 1;
  double drag_ = 1;
  double group_batch_ = 0;  // 0 = each member trains kBatch
  bool follows_shares_ = false;
  absl::Duration report_every_;
  absl::Time reported_at_ = absl::InfinitePast();
  std::set<uint64_t> is_away_;
  std::vector<std::string> news_;

  TestState state_;
  AwayWorkers away_{state_};
  scheduler::Groups groups_{{}, state_, away_};
  Membership membership_{{}, state_, groups_};
  PlanMeasurements measurements_{{.shifts_samples = true}, state_};
  GroupReplans replans_{state_, measurements_, away_, groups_.roster()};
};

TEST_F(GroupReplansTest, OneGroupUntilSpeedsAreKnownThenGroupsOfEqualSpeed) {
  EXPECT_THAT(Groups(), ElementsAre(ElementsAre(3, 4, 5, 6)));
  Run(absl::Seconds(1));
  EXPECT_EQ(CountGroups(), 1u);
  Run(absl::Seconds(5));
  EXPECT_THAT(Groups(), ElementsAre(ElementsAre(3, 5), ElementsAre(4, 6)));
  ASSERT_EQ(news_.size(), 1u);
  EXPECT_THAT(news_[0], HasSubstr("2 groups planned, 2 workers moved: other groups make "));
  EXPECT_THAT(news_[0], HasSubstr("of the numbers from 1 to 4, 2 promises the most progress"));
  // Contracts do not wait for the new group's earlier steps.
  EXPECT_GT(state_.view().groups(1).first_step(), 1u);
}

TEST_F(GroupReplansTest, APlanThatHoldsWhatItPromisedStays) {
  Run(absl::Minutes(3));
  EXPECT_EQ(CountGroups(), 2u);
  ASSERT_EQ(news_.size(), 2u);
  EXPECT_THAT(news_[1], HasSubstr("the plan of 2 groups reached"));
  EXPECT_THAT(news_[1], HasSubstr("the groups before it made 80"));
}

TEST_F(GroupReplansTest, OneOddMeasurementChangesNothing) {
  speeds_ = {{3, 50}, {4, 50}, {5, 50}, {6, 50}};
  Run(absl::Seconds(40));
  // A look falls into the time in which one worker is slow; at the next one it is not.
  for (int round = 0; round < 20; ++round) {
    speeds_[3] = 10;
    Run(absl::Milliseconds(1500));
    speeds_[3] = 50;
    Run(absl::Milliseconds(3500));
  }
  EXPECT_THAT(news_, IsEmpty());
}

TEST_F(GroupReplansTest, APlanThatBringsLessThanTheGroupsBeforeIsGivenUp) {
  friction_ = 8;
  Run(absl::Minutes(1));
  EXPECT_EQ(CountGroups(), 1u);
  ASSERT_EQ(news_.size(), 3u);
  EXPECT_THAT(news_[1], HasSubstr("the plan of 2 groups reached 30 samples/s"));
  EXPECT_THAT(news_[2], HasSubstr("1 group planned"));
  EXPECT_THAT(news_[2], HasSubstr("now 2 groups, 30 samples/s (0.1"));
  Run(absl::Minutes(10));
  // Back to one group, and no other number is tried: all are expected to do as two did.
  EXPECT_LE(news_.size(), 4u);
  proto::StatusReply status;
  replans_.FillStatus(now_, status);
  EXPECT_THAT(*status.plan().sources().rbegin(), HasSubstr("for a gain of 10 % or more"));
}

TEST_F(GroupReplansTest, GroupsThatDoLessThanPredictedGiveOthersATrial) {
  speeds_ = {{3, 50}, {4, 50}, {5, 50}, {6, 50}};
  drag_ = 3;
  Run(absl::Seconds(6));
  EXPECT_EQ(CountGroups(), 2u);
  Run(absl::Minutes(10));
  EXPECT_EQ(CountGroups(), 2u);
  proto::StatusReply status;
  replans_.FillStatus(now_, status);
  ASSERT_EQ(status.plan().fits_size(), 2);
  EXPECT_NEAR(status.plan().fits(0).ratio(), 1.0 / 3, 0.05);
  EXPECT_NEAR(status.plan().fits(1).ratio(), 1, 0.05);
}

TEST_F(GroupReplansTest, GroupsThatWereALittleBetterComeBackAtOnce) {
  speeds_ = {{3, 50}, {4, 50}, {5, 50}, {6, 50}};
  // One group does a sixth less than predicted, and two do less than that one: 7 %.
  drag_ = 1.2;
  friction_ = 1.22;
  Run(absl::Seconds(6));
  ASSERT_EQ(CountGroups(), 2u);
  Run(absl::Minutes(1));
  EXPECT_EQ(CountGroups(), 1u);
}

TEST_F(GroupReplansTest, SamplesAreThoseOfTheGroupInWhichAWorkerIs) {
  Run(absl::Seconds(6));
  ASSERT_THAT(Groups(), ElementsAre(ElementsAre(3, 5), ElementsAre(4, 6)));
  Run(absl::Seconds(5));
  EXPECT_THAT(measurements_.GroupSamples(), ElementsAre(::testing::Pair(2, 2 * kBatch)));
  // The newest of a member of each group is from another one.
  for (const uint64_t node : {3, 4}) Report(state_.view().groups(node == 3 ? 1 : 0), node, 1);
  EXPECT_THAT(measurements_.GroupSamples(), IsEmpty());
}

TEST_F(GroupReplansTest, APlanIsJudgedByWhatIsMeasuredAfterIt) {
  for (auto& [node, speed] : speeds_) speed /= 100;
  report_every_ = absl::Seconds(12);
  friction_ = 8;
  Run(absl::Minutes(4));
  EXPECT_EQ(CountGroups(), 1u);
  EXPECT_THAT(news_, ::testing::Contains(HasSubstr("the plan of 2 groups reached 0.3 samples/s")));
}

TEST_F(GroupReplansTest, AWorkerThatLeavesDuringATrialIsNotThePlansFault) {
  Run(absl::Seconds(6));
  ASSERT_EQ(CountGroups(), 2u);
  membership_.Leave(now_, NodeId(6), "");
  Run(absl::Minutes(1));
  EXPECT_THAT(news_, ::testing::Not(::testing::Contains(HasSubstr("reached"))));
  proto::StatusReply status;
  replans_.FillStatus(now_, status);
  EXPECT_THAT(status.plan().sources(), ::testing::Not(::testing::Contains(HasSubstr("changes:"))));
}

TEST_F(GroupReplansTest, AGroupWhoseOnlyMemberDrainsIsLeftAlone) {
  Run(absl::Seconds(6));
  membership_.Leave(now_, NodeId(6), "");
  Run(absl::Seconds(5));
  ASSERT_THAT(Groups(), ElementsAre(ElementsAre(3, 5), ElementsAre(4)));
  state_.mutable_view()->mutable_nodes(2)->set_draining(true);
  ASSERT_EQ(state_.view().nodes(2).id(), 4u);
  news_.clear();
  Run(absl::Minutes(1));
  EXPECT_THAT(Groups(), ElementsAre(ElementsAre(3, 5), ElementsAre(4)));
  EXPECT_THAT(news_, IsEmpty());
}

TEST_F(GroupReplansTest, AWorkerThatIsOutAndAwayIsNotPlaced) {
  Run(absl::Seconds(1));
  ASSERT_EQ(Register(proto::WORKER), NodeId(7));
  proto::HeartbeatRequest beat;
  beat.mutable_away()->set_left_ms(20'000);
  beat.mutable_away()->set_reason("left out");
  away_.OnHeartbeat(now_, NodeId(7), beat);
  Run(absl::Seconds(5));
  for (const auto& group : Groups()) EXPECT_THAT(group, ::testing::Not(::testing::Contains(7)));
  // The others are planned meanwhile.
  Run(absl::Seconds(5));
  EXPECT_EQ(CountGroups(), 2u);
  Run(absl::Seconds(30));
  size_t members = 0;
  for (const auto& group : Groups()) members += group.size();
  EXPECT_EQ(members, 5u);
}

TEST_F(GroupReplansTest, APlanInWhichNobodyTakesStepsIsGivenUp) {
  Run(absl::Seconds(6));
  ASSERT_EQ(CountGroups(), 2u);
  Stand(absl::Seconds(30));
  EXPECT_EQ(CountGroups(), 2u);
  Stand(absl::Seconds(40));
  EXPECT_EQ(CountGroups(), 1u);
  EXPECT_THAT(news_.back(), HasSubstr("not all workers take steps"));
  Run(absl::Minutes(5));
  EXPECT_EQ(CountGroups(), 1u);
}

TEST_F(GroupReplansTest, NumbersThatAreNotFiniteAreNotMeasured) {
  Run(absl::Seconds(2));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto damaged = [&](auto damage) {
    proto::Progress progress;
    progress.set_step(++steps_);
    progress.set_samples_per_step(kBatch);
    progress.set_samples_per_second(kBatch);
    progress.set_compute_seconds(1 + 1e-9 * steps_);
    damage(progress);
    for (int i = 0; i < 5; ++i) {
      progress.set_step(++steps_);
      measurements_.OnHeartbeat(now_, NodeId(3), progress);
    }
    return measurements_.Inputs(now_, measurements_.Workers()).workers[0].speed;
  };
  const double speed = measurements_.Inputs(now_, measurements_.Workers()).workers[0].speed;
  EXPECT_EQ(damaged([](auto& progress) { progress.set_samples_per_step(kInfinity); }), speed);
  EXPECT_EQ(damaged([](auto& progress) { progress.set_samples_per_second(kInfinity); }), speed);
  EXPECT_EQ(damaged([](auto& progress) { progress.set_wait_seconds(kInfinity); }), speed);
  EXPECT_EQ(damaged([](auto& progress) { progress.set_recovery_seconds(kInfinity); }), speed);
  EXPECT_EQ(damaged([](auto& progress) {
              progress.set_samples_per_step(1e300);
              progress.set_compute_seconds(1e-300);
            }),
            speed);
}

TEST_F(GroupReplansTest, SaysWhomItWaitsFor) {
  proto::StatusReply status;
  replans_.FillStatus(now_, status);
  EXPECT_THAT(
      status.plan().sources(),
      ::testing::Contains("waits for measurements of worker-0, worker-1, worker-2, worker-3"));
}

TEST_F(GroupReplansTest, WhatWasFoundOutIsForgottenWhenTheJobGrows) {
  friction_ = 8;
  Run(absl::Minutes(2));
  ASSERT_EQ(CountGroups(), 1u);
  news_.clear();
  for (int i = 0; i < 2; ++i) Register(proto::WORKER, "z/b");
  Run(absl::Minutes(1));
  EXPECT_THAT(news_, ::testing::Contains(HasSubstr("the plan of 2 groups reached")));
}

TEST_F(GroupReplansTest, AFixedBatchIsSeenInGroupsOfTwoSizes) {
  group_batch_ = 4 * kBatch;
  Run(absl::Seconds(3));
  proto::StatusReply before;
  replans_.FillStatus(now_, before);
  EXPECT_EQ(before.plan().group_samples_per_step(), 0);
  Run(absl::Seconds(10));
  ASSERT_EQ(CountGroups(), 2u);
  proto::StatusReply after;
  replans_.FillStatus(now_, after);
  EXPECT_EQ(after.plan().group_samples_per_step(), 4 * kBatch);
  EXPECT_THAT(*after.plan().sources().rbegin(), HasSubstr("a group of any size trains 40 samples"));
}

TEST_F(GroupReplansTest, AWorkerThatComesJoinsWhereItFits) {
  Run(absl::Seconds(6));
  ASSERT_EQ(CountGroups(), 2u);
  news_.clear();
  EXPECT_EQ(Register(proto::WORKER, "z/a"), NodeId(7));
  Run(absl::Milliseconds(500));
  EXPECT_EQ(CountGroups(), 2u);
  Run(absl::Seconds(2));
  ASSERT_EQ(news_.size(), 2u);
  EXPECT_THAT(news_[1], HasSubstr("1 placed: worker-4 waited for a group"));
  size_t members = 0;
  for (const auto& group : Groups()) members += group.size();
  EXPECT_EQ(members, 5u);
  Run(absl::Minutes(2));
  EXPECT_THAT(Groups(), ElementsAre(::testing::UnorderedElementsAre(3, 5, 7), ElementsAre(4, 6)));
}

TEST_F(GroupReplansTest, NewWorkersReplaceGroupsThatHaveDied) {
  for (uint64_t node = 3; node <= 6; ++node) {
    membership_.Leave(now_, NodeId(node), "");
  }
  Register(proto::WORKER);
  Register(proto::WORKER);
  EXPECT_EQ(CountGroups(), 0u);
  Run(absl::Seconds(3));
  EXPECT_THAT(Groups(), ElementsAre(ElementsAre(7, 8)));
}

TEST_F(GroupReplansTest, AWorkerThatIsAwayPutsItOff) {
  is_away_ = {5};
  Run(absl::Seconds(20));
  EXPECT_EQ(CountGroups(), 1u);
  is_away_.clear();
  Run(absl::Seconds(6));
  EXPECT_EQ(CountGroups(), 2u);
}

TEST_F(GroupReplansTest, WorkersThatTakeNoStepsAreLeftWhereTheyAre) {
  Run(absl::Seconds(3));
  ASSERT_EQ(CountGroups(), 1u);
  now_ += PlanMeasurements::kFreshFor;
  Stand(absl::Minutes(5));
  EXPECT_EQ(CountGroups(), 1u);
  Run(absl::Seconds(10));
  EXPECT_EQ(CountGroups(), 2u);
}

TEST_F(GroupReplansTest, GroupsThatWaitForEachOtherAreOne) {
  Run(absl::Seconds(6));
  ASSERT_EQ(CountGroups(), 2u);
  SetContract("bsp", *state_.mutable_view()->mutable_tables(0));
  Run(absl::Minutes(1));
  EXPECT_EQ(CountGroups(), 1u);
}

TEST_F(GroupReplansTest, GroupsThatDivideTheirSamplesBySpeedNeedNoEqualMembers) {
  follows_shares_ = true;
  Run(absl::Minutes(1));
  EXPECT_EQ(CountGroups(), 1u);
}

TEST_F(GroupReplansTest, WithoutATableNothingIsPlanned) {
  state_.mutable_view()->clear_tables();
  Run(absl::Minutes(1));
  EXPECT_EQ(CountGroups(), 1u);
  proto::StatusReply status;
  replans_.FillStatus(now_, status);
  EXPECT_FALSE(status.has_plan());
}

TEST_F(GroupReplansTest, AnEvictedWorkerStaysOut) {
  state_.mutable_view()->mutable_nodes(4)->set_home_group(1);
  {
    Transaction change(state_);
    groups_.roster().TakeOut(NodeId(6), change);
    change.Add(WorkerStandsBy{.worker = "worker-3"});
    change.Commit();
  }
  Run(absl::Minutes(1));
  for (const auto& group : Groups()) EXPECT_THAT(group, ::testing::Not(::testing::Contains(6)));
}

TEST_F(GroupReplansTest, TellsByWhatItPlans) {
  Run(absl::Seconds(6));
  membership_.Leave(now_, NodeId(6), "");
  proto::StatusReply status;
  replans_.FillStatus(now_, status);
  ASSERT_TRUE(status.has_plan());
  EXPECT_TRUE(status.plan().automatic());
  ASSERT_EQ(status.plan().workers_size(), 3);
  EXPECT_DOUBLE_EQ(status.plan().workers(1).samples_per_second(), 20);
  EXPECT_DOUBLE_EQ(status.plan().gradient_bytes(), 4000);
  EXPECT_DOUBLE_EQ(status.plan().statistical_penalty(), 0.07);
  EXPECT_GT(status.plan().next_ms(), 20'000u);
  EXPECT_DOUBLE_EQ(status.plan().pushed_bytes(), 4000);
  ASSERT_EQ(status.plan().sources_size(), 5);
  EXPECT_EQ(status.plan().sources(3), "each way: 0.004 MB, tables: 1; servers: 1");
}

TEST_F(GroupReplansTest, BytesAreThoseOfTheTablesFormats) {
  proto::Table& table = *state_.mutable_view()->mutable_tables(0);
  table.mutable_spec()->set_gradient_format(proto::WIRE_BFLOAT16);
  const auto model = [this] { return measurements_.Inputs(now_, measurements_.Workers()).model; };
  // 2000 there, 4000 back.
  EXPECT_DOUBLE_EQ(model().gradient_bytes, 3000);
  EXPECT_DOUBLE_EQ(model().pushed_bytes, 3000);
  table.mutable_spec()->set_value_format(proto::WIRE_BFLOAT16);
  EXPECT_DOUBLE_EQ(model().gradient_bytes, 2000);
  EXPECT_DOUBLE_EQ(model().pushed_bytes, 2000);
  table.mutable_spec()->clear_value_format();
  SetContract("local:8", table);
  *table.mutable_spec()->mutable_contract() = table.contract();
  table.mutable_spec()->mutable_inner_optimizer()->set_kind(proto::Optimizer::SGD);
  table.mutable_spec()->mutable_inner_learning_rate()->set_base(0.1);
  EXPECT_DOUBLE_EQ(model().gradient_bytes, 3000);
  EXPECT_DOUBLE_EQ(model().pushed_bytes, 500) << "rounds travel as float32";
}

TEST_F(GroupReplansTest, ServersHaveTheFastestLinkAndRoundsPushOnce) {
  LinkCosts costs;
  costs.at(Level::kRack).bytes_per_second = 2e6;
  costs.at(Level::kZone).bytes_per_second = costs.at(Level::kCluster).bytes_per_second = 1e6;
  measurements_.SetCosts(costs, "links: measured");
  EXPECT_DOUBLE_EQ(
      measurements_.Inputs(now_, measurements_.Workers()).model.server_seconds_per_group,
      2 * 4000 / 2e6);
  proto::Table& table = *state_.mutable_view()->mutable_tables(0);
  SetContract("local:8", table);
  *table.mutable_spec()->mutable_contract() = table.contract();
  table.mutable_spec()->mutable_inner_optimizer()->set_kind(proto::Optimizer::SGD);
  table.mutable_spec()->mutable_inner_learning_rate()->set_base(0.1);
  const PlanInputs inputs = measurements_.Inputs(now_, measurements_.Workers());
  EXPECT_DOUBLE_EQ(inputs.model.gradient_bytes, 4000);
  EXPECT_DOUBLE_EQ(inputs.model.pushed_bytes, 500);
  EXPECT_DOUBLE_EQ(inputs.model.server_seconds_per_group, 2 * 500 / 2e6);
}

TEST_F(GroupReplansTest, DeathsOfARankCountAsItsFailures) {
  for (const uint64_t node : {3, 4}) {
    proto::Node& dead = *state_.mutable_view()->mutable_nodes(static_cast<int>(node) - 2);
    dead.set_state(node == 3 ? proto::Node::DEAD : proto::Node::LEFT);
    measurements_.OnDeparture(NodeId(node));
    dead.set_state(proto::Node::ALIVE);
  }
  const PlanInputs inputs = measurements_.Inputs(kStart + absl::Hours(2), measurements_.Workers());
  EXPECT_DOUBLE_EQ(inputs.workers[0].failures_per_hour, 0.5);
  EXPECT_DOUBLE_EQ(inputs.workers[1].failures_per_hour, 0);
}

// The groups were ordered.
class OrderedGroupsTest : public GroupReplansTest {
 protected:
  OrderedGroupsTest()
      : GroupReplansTest({.name = "job", .servers = 1, .groups = 2, .workers_per_group = 2}) {}
};

TEST_F(OrderedGroupsTest, StayButTheirOperatorCanCompare) {
  Run(absl::Minutes(1));
  EXPECT_THAT(news_, IsEmpty());
  proto::StatusReply status;
  replans_.FillStatus(now_, status);
  ASSERT_TRUE(status.has_plan());
  EXPECT_FALSE(status.plan().automatic());
  EXPECT_EQ(status.plan().next_ms(), 0u);
}

TEST_F(OrderedGroupsTest, AGroupKeepsItsNumberWithMostOfItsMembers) {
  Transaction change(state_);
  const std::vector<std::vector<NodeId>> planned = {{NodeId(5), NodeId(6), NodeId(4)}, {NodeId(3)}};
  EXPECT_EQ(groups_.roster().Regroup(planned, change).moved, 1u);
  change.Add(GroupsPlanned{.groups = 2});
  change.Commit();
  EXPECT_EQ(FindActiveGroupOf(state_.view(), NodeId(4))->id(), 2u);
  EXPECT_EQ(FindActiveGroupOf(state_.view(), NodeId(3))->id(), 1u);
  EXPECT_EQ(state_.view().groups(1).generation(), 2u);
}

TEST_F(OrderedGroupsTest, AGroupThatIsLeftOverEnds) {
  Transaction change(state_);
  const std::vector<NodeId> all = {NodeId(3), NodeId(4), NodeId(5), NodeId(6)};
  EXPECT_EQ(groups_.roster().Regroup({all}, change).moved, 2u);
  change.Add(GroupsPlanned{.groups = 1});
  change.Commit();
  const auto view = *ClusterView::Make(state_.view());
  for (const NodeId worker : all) EXPECT_EQ(view->GroupOf(worker)->id(), 1u);
  EXPECT_EQ(view->proto().groups(1).state(), proto::Group::DONE);
}

}  // namespace
}  // namespace covey::scheduler
