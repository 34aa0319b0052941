// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/cut_plan.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);
const absl::Time kCut = kStart + absl::Seconds(3);

// Groups 1 and 2 of one worker each: 10 and 7 steps per second since kStart.
class CutPlanTest : public ::testing::Test {
 protected:
  CutPlanTest() {
    for (uint32_t id = 1; id <= 2; ++id) {
      proto::Group& group = *view_.add_groups();
      group.set_id(id);
      group.set_state(proto::Group::ACTIVE);
      group.add_members(10 + id);
      const uint64_t pace = id == 1 ? 10 : 7;
      forecast_.OnProgress(kStart, NodeId(10 + id), {.group = GroupId(id)});
      forecast_.OnProgress(kStart + absl::Seconds(1), NodeId(10 + id),
                           {.group = GroupId(id), .step = pace});
    }
  }
  proto::Contract& AddTable() {
    proto::Table& table = *view_.add_tables();
    table.set_id(static_cast<uint32_t>(view_.tables_size()));
    table.mutable_spec()->set_name(absl::StrCat("table-", table.id()));
    return *table.mutable_spec()->mutable_contract();
  }
  // "group:step" of each.
  std::vector<std::string> Plan(Flush flush = Flush::kAwaited) const {
    const auto cut = PlanCut(view_, forecast_, kCut, flush);
    EXPECT_TRUE(cut.ok()) << cut.status();
    std::vector<std::string> steps;
    for (const proto::CutStep& last : cut->steps) {
      steps.push_back(absl::StrCat(last.group(), ":", last.step()));
    }
    return steps;
  }

  proto::ClusterView view_;
  StepForecast forecast_;
};

TEST_F(CutPlanTest, EachGroupHasItsOwnStepWhereNoneWaits) {
  AddTable().set_kind(proto::Contract::ASYNC);
  proto::Contract& buffered = AddTable();
  buffered.set_kind(proto::Contract::BUFFERED);
  buffered.set_buffer(2);
  EXPECT_THAT(Plan(), ElementsAre("1:30", "2:21"));
}

TEST_F(CutPlanTest, GroupsThatWaitForEachOtherHaveOneStep) {
  AddTable().set_kind(proto::Contract::ASYNC);
  proto::Contract& contract = AddTable();
  contract.set_kind(proto::Contract::BSP);
  EXPECT_THAT(Plan(), ElementsAre("1:30", "2:30"));
  contract.set_kind(proto::Contract::SSP);
  contract.set_staleness(3);
  EXPECT_THAT(Plan(), ElementsAre("1:30", "2:30"));
}

TEST_F(CutPlanTest, ALocalTableIsCutAfterARound) {
  proto::Contract& four = AddTable();
  four.set_kind(proto::Contract::LOCAL);
  four.set_local_steps(4);
  EXPECT_THAT(Plan(), ElementsAre("1:32", "2:32"));
  proto::Contract& six = AddTable();
  six.set_kind(proto::Contract::LOCAL);
  six.set_local_steps(6);
  EXPECT_THAT(Plan(), ElementsAre("1:36", "2:36")) << "a round of both tables ends";
}

TEST_F(CutPlanTest, IsPutOffUntilErrorFeedbackIsFlushed) {
  proto::Contract& contract = AddTable();
  contract.set_kind(proto::Contract::BSP);
  view_.set_feedback_flush_steps(25);
  EXPECT_THAT(Plan(), ElementsAre("1:30", "2:30")) << "float32 keeps nothing";
  view_.mutable_tables(0)->mutable_spec()->set_gradient_format(proto::WIRE_INT8_BLOCK);
  EXPECT_THAT(Plan(), ElementsAre("1:50", "2:50"));
  EXPECT_THAT(Plan(Flush::kIgnored), ElementsAre("1:30", "2:30"));
  view_.mutable_closing();
  EXPECT_THAT(Plan(), ElementsAre("1:30", "2:30")) << "the job ends";
  view_.clear_closing();
  contract.set_kind(proto::Contract::ASYNC);
  EXPECT_THAT(Plan(), ElementsAre("1:30", "2:21")) << "the other group's pushes would be held";
  AddTable().set_kind(proto::Contract::SSP);
  EXPECT_THAT(Plan(), ElementsAre("1:50", "2:50"));
  proto::Contract& local = AddTable();
  local.set_kind(proto::Contract::LOCAL);
  local.set_local_steps(4);
  EXPECT_THAT(Plan(), ElementsAre("1:32", "2:32")) << "members hold more than rounding errors";
}

TEST_F(CutPlanTest, LeavesOutGroupsThatHaveEnded) {
  AddTable().set_kind(proto::Contract::ASYNC);
  view_.mutable_groups(0)->set_state(proto::Group::DONE);
  EXPECT_THAT(Plan(), ElementsAre("2:21"));
  view_.mutable_groups(1)->set_state(proto::Group::DONE);
  EXPECT_THAT(Plan(), IsEmpty());
}

TEST_F(CutPlanTest, WaitsForAGroupThatHasNotReported) {
  AddTable().set_kind(proto::Contract::ASYNC);
  forecast_.OnDeparture(NodeId(12));
  const absl::Status status = PlanCut(view_, forecast_, kCut, Flush::kAwaited).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("group 2"));
}

}  // namespace
}  // namespace covey::scheduler
