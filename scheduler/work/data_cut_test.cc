// SPDX-License-Identifier: Apache-2.0
#include "scheduler/work/data_cut.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/state/cluster_state_fixture.h"
#include "scheduler/work/data_dispatcher.h"

namespace covey::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);
const std::map<GroupId, uint64_t> kCut = {{GroupId(1), 5}, {GroupId(2), 9}};

proto::WorkItem Item(uint64_t first, uint64_t count, uint64_t step) {
  proto::WorkItem item;
  item.set_first(first);
  item.set_count(count);
  item.set_step(step);
  return item;
}

// Two groups: workers 2 and 3, and worker 4. One pass over 100 examples in items of 10.
class DataCutTest : public ::testing::Test {
 protected:
  DataCutTest() {
    state_.record().set_next_node(10);
    proto::ClusterView& view = *state_.mutable_view();
    for (uint64_t id = 2; id <= 4; ++id) {
      proto::Node& node = *view.add_nodes();
      node.set_id(id);
      node.set_name(absl::StrCat("worker-", id));
      node.set_role(proto::WORKER);
      node.set_state(proto::Node::ALIVE);
    }
    for (uint32_t id = 1; id <= 2; ++id) {
      proto::Group& group = *view.add_groups();
      group.set_id(id);
      group.set_state(proto::Group::ACTIVE);
    }
    view.mutable_groups(0)->add_members(2);
    view.mutable_groups(0)->add_members(3);
    view.mutable_groups(1)->add_members(4);
    dispatcher_ = std::make_unique<DataDispatcher>(state_);
    dispatcher_->Start(kStart, kStart);
  }

  proto::WorkRequest Request(uint32_t wanted) {
    proto::WorkRequest request;
    request.set_name("digits");
    request.set_examples(100);
    request.set_item_examples(10);
    request.set_passes(1);
    request.set_wanted(wanted);
    return request;
  }
  std::vector<std::string> Send(DataDispatcher& dispatcher, uint64_t node,
                                const proto::WorkRequest& request) {
    Message message;
    message.envelope.mutable_header()->set_node(node);
    message.envelope.mutable_header()->set_request_id(++last_id_);
    *message.envelope.mutable_work_request() = request;
    std::vector<DataDispatcher::Answer> answers;
    dispatcher.OnRequest(kStart, message, answers);
    std::vector<std::string> given;
    for (const DataDispatcher::Answer& answer : answers) {
      EXPECT_TRUE(answer.status.ok()) << answer.status;
      for (const proto::WorkItem& item : answer.reply.items()) {
        given.push_back(absl::StrCat(item.first(), "+", item.count()));
      }
    }
    return given;
  }
  std::vector<std::string> Ask(uint64_t node, uint32_t wanted) {
    return Send(*dispatcher_, node, Request(wanted));
  }
  void Report(uint64_t node, const std::vector<proto::WorkItem>& finished, uint64_t finished_step) {
    proto::WorkRequest request = Request(0);
    for (const proto::WorkItem& item : finished) *request.add_finished() = item;
    request.set_finished_step(finished_step);
    Send(*dispatcher_, node, request);
  }
  std::vector<std::string> FinishedAtCut() {
    std::vector<std::string> finished;
    const proto::WorkLedger ledger = dispatcher_->LedgersAtCut().at(0);
    for (const proto::WorkItem& item : ledger.finished()) {
      finished.push_back(absl::StrCat(item.first(), "+", item.count()));
    }
    return finished;
  }

  TestState state_;
  std::unique_ptr<DataDispatcher> dispatcher_;
  uint64_t last_id_ = 0;
};

TEST_F(DataCutTest, HoldsWhatWasTrainedUpToTheLastStepOfEachGroup) {
  for (const uint64_t node : {2, 3, 4}) Ask(node, 2);
  Report(2, {Item(0, 3, 4)}, 4);
  ASSERT_TRUE(dispatcher_->BeginCut(kCut).ok());
  EXPECT_THAT(dispatcher_->CutWaitsFor(),
              HasSubstr("worker-2 has reported its examples of 'digits' "
                        "up to step 4 of group 1, and the cut ends "
                        "with step 5"));
  Report(2, {Item(3, 3, 5), Item(6, 3, 6)}, 6);
  Report(3, {Item(20, 10, 6)}, 6);
  EXPECT_THAT(dispatcher_->CutWaitsFor(), HasSubstr("worker-4"));
  Report(4, {Item(40, 1, 8), Item(41, 1, 9)}, 8);
  EXPECT_FALSE(dispatcher_->CutIsComplete()) << "more of step 9 may follow";
  Report(4, {Item(42, 1, 9), Item(43, 1, 10)}, 10);
  EXPECT_EQ(dispatcher_->CutWaitsFor(), "");
  EXPECT_THAT(FinishedAtCut(), ElementsAre("0+6", "40+3"));
  dispatcher_->EndCut();
  ASSERT_TRUE(dispatcher_->BeginCut({{GroupId(1), 50}, {GroupId(2), 50}}).ok());
  for (const uint64_t node : {2, 3, 4}) Report(node, {}, 50);
  EXPECT_THAT(FinishedAtCut(), ElementsAre("0+9", "20+10", "40+4"));
}

// An item of a member that was lost is given to another one, and both may report it.
TEST_F(DataCutTest, HoldsWhatAnyMemberHasTrainedUpToTheLastStep) {
  for (const uint64_t node : {2, 3}) Ask(node, 1);
  ASSERT_TRUE(dispatcher_->BeginCut({{GroupId(1), 5}}).ok());
  Report(2, {Item(0, 6, 6)}, 6);
  Report(3, {Item(0, 2, 5), Item(4, 2, 6)}, 6);
  EXPECT_EQ(dispatcher_->CutWaitsFor(), "");
  EXPECT_THAT(FinishedAtCut(), ElementsAre("0+2"));
}

TEST_F(DataCutTest, BeginsBeforeALaterStepIsReported) {
  Ask(3, 1);
  Report(3, {Item(0, 1, 6)}, 0);
  const absl::Status status = dispatcher_->BeginCut(kCut);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("step 6 of group 1"));
  // A group that pauses after this step may be cut there.
  EXPECT_TRUE(dispatcher_->BeginCut({{GroupId(1), 6}, {GroupId(2), 1}}).ok());
}

TEST_F(DataCutTest, ComparesOnlyStepsOfTheSameGroup) {
  Ask(3, 1);
  Report(3, {Item(0, 1, 500)}, 500);
  state_.mutable_view()->mutable_groups(0)->mutable_members()->RemoveLast();
  state_.mutable_view()->mutable_groups(1)->add_members(3);
  ASSERT_TRUE(dispatcher_->BeginCut(kCut).ok());
  EXPECT_THAT(dispatcher_->CutWaitsFor(), HasSubstr("worker-3"));
  Report(3, {Item(1, 1, 9)}, 9);
  EXPECT_EQ(dispatcher_->CutWaitsFor(), "");
  EXPECT_THAT(FinishedAtCut(), ElementsAre("0+2"));
}

// An example is given twice when a lease ends. Its holders may be one node.
TEST_F(DataCutTest, AnExampleThatWasTrainedTwiceIsInTheCutIfOneTrainingIs) {
  for (const uint64_t node : {2, 3, 4}) Ask(node, 2);
  ASSERT_TRUE(dispatcher_->BeginCut(kCut).ok());
  Report(2, {Item(0, 3, 5), Item(1, 4, 6)}, 6);
  Report(3, {Item(20, 5, 6)}, 6);
  Report(4, {Item(24, 2, 9), Item(26, 2, 10)}, 10);
  ASSERT_EQ(dispatcher_->CutWaitsFor(), "");
  EXPECT_THAT(FinishedAtCut(), ElementsAre("0+3", "24+2"));
}

// The number may come from anyone.
TEST_F(DataCutTest, TheHighestStepOfANodeInNoGroupDoesNoHarm) {
  Ask(5, 1);
  Report(5, {Item(0, 1, ~0ull)}, ~0ull);
  EXPECT_TRUE(dispatcher_->BeginCut(kCut).ok());
}

TEST_F(DataCutTest, IsImpossibleWithoutSteps) {
  Ask(2, 1);
  Report(2, {Item(0, 1, 0)}, 0);
  EXPECT_THAT(std::string(dispatcher_->BeginCut(kCut).message()), HasSubstr("worker-2"));
  // Merged pieces of steps before the cut.
  Report(2, {Item(1, 1, 0)}, 2);
  ASSERT_TRUE(dispatcher_->BeginCut(kCut).ok());
  Report(2, {Item(2, 1, 0)}, 4);
  EXPECT_THAT(dispatcher_->CutWaitsFor(), HasSubstr("up to step 4"));
  Report(2, {Item(3, 2, 0)}, 6);
  EXPECT_THAT(dispatcher_->WhyCutIsImpossible(), HasSubstr("cannot be made: worker-2"));
}

TEST_F(DataCutTest, WaitsOnlyForMembersThatMayHaveTrainedSomething) {
  for (const uint64_t node : {2, 3}) Ask(node, 1);
  ASSERT_TRUE(dispatcher_->BeginCut(kCut).ok());
  Report(2, {}, 7);
  EXPECT_THAT(dispatcher_->CutWaitsFor(), HasSubstr("worker-3"));
  proto::WorkRequest back = Request(0);
  *back.add_returned() = Item(10, 10, 0);
  Send(*dispatcher_, 3, back);
  EXPECT_EQ(dispatcher_->CutWaitsFor(), "") << "worker-3 has closed the data set";
  Ask(3, 1);
  EXPECT_THAT(dispatcher_->CutWaitsFor(), HasSubstr("worker-3"));
  state_.mutable_view()->mutable_nodes(1)->set_state(proto::Node::DEAD);
  EXPECT_EQ(dispatcher_->CutWaitsFor(), "");
}

TEST_F(DataCutTest, ADataSetThatIsFinishedIsNotWaitedFor) {
  for (const uint64_t node : {2, 3, 4}) Ask(node, 4);
  ASSERT_TRUE(dispatcher_->BeginCut(kCut).ok());
  Report(2, {Item(0, 50, 5)}, 0);
  Report(3, {Item(50, 50, 5)}, 0);
  EXPECT_EQ(dispatcher_->WhyCutIsImpossible(), "");
  EXPECT_EQ(dispatcher_->CutWaitsFor(), "");
  EXPECT_EQ(dispatcher_->LedgersAtCut().at(0).pass(), 1u) << "all of the only pass";
}

// Worker 4 may have trained an example of worker 3 in the cut, and will not report it.
TEST_F(DataCutTest, CannotBeMadeWhenADataSetIsFinishedInLaterStepsBeforeAllHaveReported) {
  for (const uint64_t node : {2, 3, 4}) Ask(node, 4);
  ASSERT_TRUE(dispatcher_->BeginCut(kCut).ok());
  Report(2, {Item(0, 50, 5)}, 5);
  Report(3, {Item(50, 49, 6)}, 6);
  EXPECT_EQ(dispatcher_->WhyCutIsImpossible(), "");
  Report(3, {Item(99, 1, 6)}, 6);
  EXPECT_THAT(dispatcher_->WhyCutIsImpossible(), HasSubstr("before worker-4 had reported"));
  dispatcher_->EndCut();
  ASSERT_TRUE(dispatcher_->BeginCut(kCut).ok());
  EXPECT_EQ(dispatcher_->WhyCutIsImpossible(), "");
  EXPECT_EQ(dispatcher_->CutWaitsFor(), "");
  EXPECT_EQ(dispatcher_->LedgersAtCut().at(0).pass(), 1u) << "all of the only pass";
}

TEST_F(DataCutTest, AfterARestartEachMemberMayHoldExamples) {
  Ask(2, 1);
  dispatcher_ = std::make_unique<DataDispatcher>(state_);
  dispatcher_->Start(kStart, kStart);
  ASSERT_TRUE(dispatcher_->BeginCut({{GroupId(1), 5}}).ok());
  EXPECT_THAT(dispatcher_->CutWaitsFor(), HasSubstr("worker-2"));
  Report(2, {Item(0, 10, 5)}, 5);
  EXPECT_THAT(dispatcher_->CutWaitsFor(), HasSubstr("worker-3"));
}

// It may take longer than a lease until the steps of its examples are durable, and it reports them.
TEST_F(DataCutTest, AMemberThatOnlyAsksHowThingsAreMayHoldExamplesAfterTheLease) {
  for (const uint64_t node : {2, 3}) Ask(node, 1);
  dispatcher_ = std::make_unique<DataDispatcher>(state_);
  dispatcher_->Start(kStart, kStart);
  Message request;
  request.envelope.mutable_header()->set_node(3);
  *request.envelope.mutable_work_request() = Request(0);
  std::vector<DataDispatcher::Answer> answers;
  dispatcher_->OnRequest(kStart, request, answers);
  dispatcher_->Tick(kStart + DataDispatcher::kLease, answers);
  ASSERT_TRUE(dispatcher_->BeginCut({{GroupId(1), 5}}).ok());
  EXPECT_THAT(dispatcher_->CutWaitsFor(), HasSubstr("worker-3"));
  Report(3, {Item(10, 10, 5)}, 5);
  EXPECT_EQ(dispatcher_->CutWaitsFor(), "") << "worker-2 has not asked since";
}

// Orphaned examples stay until their pass ends, and a member may have nothing to do with them.
TEST_F(DataCutTest, AMemberThatNeverAsksHoldsNothingOnceTheLeaseIsOver) {
  Ask(2, 1);
  dispatcher_ = std::make_unique<DataDispatcher>(state_);
  dispatcher_->Start(kStart, kStart);
  ASSERT_TRUE(dispatcher_->BeginCut({{GroupId(1), 5}}).ok());
  Report(2, {Item(0, 5, 5)}, 5);
  ASSERT_THAT(dispatcher_->CutWaitsFor(), HasSubstr("worker-3"));
  std::vector<DataDispatcher::Answer> answers;
  dispatcher_->Tick(kStart + DataDispatcher::kLease, answers);
  EXPECT_EQ(dispatcher_->CutWaitsFor(), "");
  Ask(3, 1);
  EXPECT_THAT(dispatcher_->CutWaitsFor(), HasSubstr("worker-3")) << "it trains, and will report";
}

TEST_F(DataCutTest, ARestoredJobGivesTheRestAtOnce) {
  Ask(2, 3);
  ASSERT_TRUE(dispatcher_->BeginCut({{GroupId(1), 5}}).ok());
  Report(2, {Item(0, 5, 4), Item(5, 5, 6), Item(20, 10, 5)}, 6);
  ASSERT_EQ(dispatcher_->CutWaitsFor(), "");
  TestState restored;
  restored.record().set_next_node(10);
  *restored.record().add_work() = dispatcher_->LedgersAtCut()[0];
  auto dispatcher = std::make_unique<DataDispatcher>(restored);
  dispatcher->Start(kStart, kStart);
  EXPECT_THAT(Send(*dispatcher, 7, Request(3)), ElementsAre("5+10", "15+5", "30+10"));
  // Restarted, it knows that these are held.
  dispatcher = std::make_unique<DataDispatcher>(restored);
  dispatcher->Start(kStart, kStart);
  EXPECT_THAT(Send(*dispatcher, 8, Request(100)), IsEmpty()) << "100 examples are 10 items";
}

}  // namespace
}  // namespace covey::scheduler
