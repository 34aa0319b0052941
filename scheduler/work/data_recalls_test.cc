// SPDX-License-Identifier: Apache-2.0

// DataDispatcher, with nodes that wait for recalls.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/state/cluster_state_fixture.h"
#include "scheduler/work/data_dispatcher.h"
#include "scheduler/work/work_item_fixture.h"

namespace covey::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);
constexpr absl::Duration kStep = absl::Milliseconds(100);

// One pass over 20 examples in items of 2, unless a test says otherwise. Node 2 is slow.
class DataRecallsTest : public ::testing::Test {
 protected:
  DataRecallsTest() { Restart(); }

  void Restart() {
    state_.record().set_next_node(10);
    dispatcher_.emplace(state_);
    dispatcher_->Start(now_, now_);
  }
  proto::WorkRequest Request(uint32_t wanted) {
    proto::WorkRequest request;
    request.set_name("digits");
    request.set_examples(20);
    request.set_item_examples(2);
    request.set_passes(passes_);
    request.set_wanted(wanted);
    if (pass_) request.set_pass(*pass_);
    return request;
  }
  // Notes all replies, by node; returns that to this request, if it is there.
  std::optional<DataDispatcher::Answer> Send(uint64_t node, const proto::WorkRequest& request,
                                             uint64_t id = 0) {
    Message message;
    message.envelope.mutable_header()->set_node(node);
    message.envelope.mutable_header()->set_request_id(id == 0 ? ++last_id_ : id);
    *message.envelope.mutable_work_request() = request;
    std::vector<DataDispatcher::Answer> answers;
    dispatcher_->OnRequest(now_, message, answers);
    news_ = state_.News();
    std::optional<DataDispatcher::Answer> own;
    for (const DataDispatcher::Answer& answer : answers) {
      if (answer.request.envelope.header().request_id() == message.envelope.header().request_id()) {
        own = answer;
      } else {
        others_[answer.request.from().node.value()].push_back(answer);
      }
    }
    return own;
  }
  std::vector<std::string> Items(const std::optional<DataDispatcher::Answer>& answer) {
    std::vector<std::string> items;
    if (!answer) return {"no reply"};
    for (const proto::WorkItem& item : answer->reply.items()) {
      items.push_back(absl::StrCat(item.first(), "+", item.count()));
    }
    return items;
  }
  std::vector<std::string> Ask(uint64_t node, uint32_t wanted) {
    return Items(Send(node, Request(wanted)));
  }
  void Report(uint64_t node, uint64_t first, uint64_t count) {
    proto::WorkRequest request = Request(0);
    *request.add_finished() = Item(pass_.value_or(0), first, count);
    Send(node, request);
  }
  std::vector<std::string> Return(uint64_t node, uint64_t first, uint64_t count, uint64_t id = 0) {
    proto::WorkRequest request = Request(0);
    *request.add_returned() = Item(pass_.value_or(0), first, count);
    return Items(Send(node, request, id));
  }
  // Whether the request of the node waits.
  bool Waits(uint64_t node, uint64_t id = 0) { return !Send(node, Request(0), id); }
  // Whether a request of the node, which waited, was answered since the last call: with a recall.
  bool IsRecalled(uint64_t node) {
    bool recalled = false;
    for (const DataDispatcher::Answer& answer : others_[node]) {
      recalled = recalled || answer.reply.return_untrained();
    }
    others_[node].clear();
    return recalled;
  }
  std::vector<DataDispatcher::Answer> Tick() {
    std::vector<DataDispatcher::Answer> answers;
    dispatcher_->Tick(now_, answers);
    return answers;
  }
  // Node 2 has the first 3 items, and waits. Node 3 has trained the other 7, in one step.
  void LeaveAllToTheSlowNode() {
    ASSERT_THAT(Ask(2, 3), ElementsAre("0+2", "2+2", "4+2"));
    ASSERT_TRUE(Waits(2));
    Ask(3, 7);
    now_ += kStep;
    Report(3, 6, 14);
  }

  uint64_t passes_ = 1;
  std::optional<uint64_t> pass_;
  TestState state_;
  std::optional<DataDispatcher> dispatcher_;
  std::map<uint64_t, std::vector<DataDispatcher::Answer>> others_;
  std::string news_;
  absl::Time now_ = kStart;
  uint64_t last_id_ = 0;
};

TEST_F(DataRecallsTest, WhatASlowNodeHasNotBegunGoesToAnIdleOne) {
  LeaveAllToTheSlowNode();
  EXPECT_FALSE(IsRecalled(2)) << "nobody waits";
  EXPECT_THAT(Ask(3, 2), IsEmpty());
  EXPECT_TRUE(IsRecalled(2));
  EXPECT_THAT(Ask(4, 2), IsEmpty());
  EXPECT_FALSE(IsRecalled(2)) << "it was told already";
  Return(2, 2, 4);
  EXPECT_THAT(news_, HasSubstr("4 examples of node 2 are given to others"));
  EXPECT_THAT(Ask(3, 1), ElementsAre("2+2"));
  EXPECT_THAT(Ask(4, 2), ElementsAre("4+2"));
  Report(2, 0, 2);
  Report(3, 2, 2);
  EXPECT_FALSE(Send(3, Request(1))->reply.done());
  Report(4, 4, 2);
  EXPECT_TRUE(Send(3, Request(1))->reply.done());
}

TEST_F(DataRecallsTest, AReturnWithoutARecallIsNoNews) {
  Ask(2, 3);
  Return(2, 2, 4);
  EXPECT_THAT(news_, Not(HasSubstr("are given to others")));
}

// It has some left, and asks ahead of time.
TEST_F(DataRecallsTest, ANodeThatHoldsExamplesRecallsNone) {
  Ask(2, 3);
  Ask(3, 7);
  ASSERT_TRUE(Waits(2));
  now_ += absl::Seconds(1);
  Report(3, 6, 13);
  EXPECT_THAT(Ask(3, 2), IsEmpty());
  EXPECT_FALSE(IsRecalled(2));
}

TEST_F(DataRecallsTest, NodesOfEqualSpeedRecallNothingFromEachOther) {
  Ask(3, 7);
  now_ += kStep / 2;
  Ask(2, 3);
  ASSERT_TRUE(Waits(2));
  now_ += kStep / 2;
  Report(3, 0, 14);
  Ask(3, 2);
  EXPECT_FALSE(IsRecalled(2)) << "it has had its examples for half as long as these have lasted";
  now_ += kStep / 2;
  Ask(3, 2);
  EXPECT_TRUE(IsRecalled(2)) << "node 3 waits, and its examples have lasted no longer for that";
}

TEST_F(DataRecallsTest, ANodeThatNeverHadExamplesLeavesTimeToBeginSome) {
  Ask(2, 10);
  ASSERT_TRUE(Waits(2));
  Ask(3, 2);
  EXPECT_FALSE(IsRecalled(2));
  now_ += Recalls::kUnknownTurn;
  Ask(3, 2);
  EXPECT_TRUE(IsRecalled(2));
}

TEST_F(DataRecallsTest, TheNodeThatGotNoneForLongestIsFirst) {
  Ask(2, 3);
  now_ += kStep;
  Ask(4, 3);
  ASSERT_TRUE(Waits(4));
  ASSERT_TRUE(Waits(2));
  now_ += kStep;
  Ask(3, 4);
  now_ += kStep;
  Report(3, 12, 8);
  Ask(3, 2);
  EXPECT_TRUE(IsRecalled(2));
  EXPECT_FALSE(IsRecalled(4)) << "one is enough";
  Ask(3, 2);
  EXPECT_TRUE(IsRecalled(4)) << "the other one has returned nothing yet";
}

TEST_F(DataRecallsTest, ARequestWaitsForALimitedTime) {
  Ask(2, 3);
  ASSERT_TRUE(Waits(2, 100));
  ASSERT_TRUE(Waits(2, 100)) << "it is repeated";
  EXPECT_EQ(dispatcher_->NextTick(), now_ + Recalls::kWaitMax);
  now_ += Recalls::kWaitMax - kStep;
  EXPECT_THAT(Tick(), IsEmpty());
  now_ += kStep;
  const std::vector<DataDispatcher::Answer> answers = Tick();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_FALSE(answers[0].reply.return_untrained());
  EXPECT_EQ(answers[0].reply.ask_again_ms(), 0u) << "at once";
  EXPECT_EQ(dispatcher_->NextTick(), absl::InfiniteFuture());
}

TEST_F(DataRecallsTest, ANodeThatHoldsNothingDoesNotWait) {
  EXPECT_FALSE(Waits(2));
  Ask(2, 1);
  ASSERT_TRUE(Waits(2));
  Report(2, 0, 2);
  EXPECT_EQ(others_[2].size(), 1u);
  EXPECT_FALSE(others_[2][0].reply.return_untrained());
  EXPECT_FALSE(Waits(2));
}

TEST_F(DataRecallsTest, ANewRequestTakesThePlaceOfTheOneThatWaits) {
  Ask(2, 1);
  ASSERT_TRUE(Waits(2, 100));
  ASSERT_TRUE(Waits(2, 101));
  ASSERT_EQ(others_[2].size(), 1u);
  EXPECT_EQ(others_[2][0].request.envelope.header().request_id(), 100u);
}

TEST_F(DataRecallsTest, TheRequestOfALostNodeEnds) {
  Ask(2, 1);
  ASSERT_TRUE(Waits(2));
  std::vector<DataDispatcher::Answer> answers;
  dispatcher_->OnDeparture(now_, NodeId(2), answers);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].status.code(), absl::StatusCode::kAborted);
}

// As release 0.1.0.
TEST_F(DataRecallsTest, ANodeThatDoesNotWaitKeepsWhatItHolds) {
  Ask(2, 3);
  Ask(3, 7);
  now_ += kStep;
  Report(3, 6, 14);
  const auto none = Send(3, Request(2));
  EXPECT_THAT(Items(none), IsEmpty());
  EXPECT_GT(none->reply.ask_again_ms(), 0u);
  EXPECT_THAT(others_[2], IsEmpty());
}

TEST_F(DataRecallsTest, ARepeatedReturnTakesNothingFromAnotherNode) {
  LeaveAllToTheSlowNode();
  Ask(3, 2);
  ASSERT_TRUE(IsRecalled(2));
  Return(2, 2, 4, 100);
  ASSERT_THAT(Ask(3, 2), ElementsAre("2+2", "4+2"));
  Return(2, 2, 4, 100);
  EXPECT_THAT(Ask(4, 2), IsEmpty());
}

// The scheduler restarts before its reply to the return has arrived, so this is sent again.
TEST_F(DataRecallsTest, AReturnThatIsRepeatedAfterARestartTakesNothingFromAnotherNode) {
  LeaveAllToTheSlowNode();
  Ask(3, 2);
  ASSERT_TRUE(IsRecalled(2));
  Return(2, 2, 4, 100);
  ASSERT_THAT(Ask(3, 2), ElementsAre("2+2", "4+2"));
  Restart();
  Return(2, 2, 4, 100);
  EXPECT_THAT(Ask(4, 2), IsEmpty()) << "node 3 trains them";
}

TEST_F(DataRecallsTest, OnlyExamplesOfTheSamePassAreRecalled) {
  passes_ = 2;
  pass_ = 0;
  LeaveAllToTheSlowNode();
  pass_ = 1;
  Ask(3, 2);
  EXPECT_FALSE(IsRecalled(2)) << "the pass that node 3 names has not begun";
  pass_ = 0;
  Ask(4, 2);
  now_ += Recalls::kUnknownTurn;
  Ask(4, 2);
  EXPECT_TRUE(IsRecalled(2));
  Return(2, 2, 4);
  EXPECT_THAT(Ask(4, 2), ElementsAre("2+2", "4+2"));
}

TEST_F(DataRecallsTest, ANodeThatHasNotNoticedTheEndOfItsPassRecallsNothingOfTheNext) {
  passes_ = 2;
  pass_ = 0;
  Ask(2, 5);
  Ask(3, 5);
  Report(2, 0, 10);
  Report(3, 10, 10);
  pass_ = 1;
  ASSERT_THAT(Ask(2, 3), Not(IsEmpty()));
  ASSERT_TRUE(Waits(2));
  now_ += kStep;
  pass_ = 0;
  EXPECT_THAT(Ask(3, 2), IsEmpty());
  EXPECT_FALSE(IsRecalled(2));
}

TEST_F(DataRecallsTest, ANodeThatNamesItsNextPassDoesNotWait) {
  passes_ = 2;
  pass_ = 0;
  Ask(2, 9);
  Ask(3, 1);
  ASSERT_TRUE(Waits(3));
  ASSERT_TRUE(Waits(2));
  Report(2, 0, 18);
  EXPECT_EQ(others_[2].size(), 1u) << "it holds none";
  pass_ = 1;
  EXPECT_FALSE(Waits(2));
  EXPECT_FALSE(Waits(3));
}

// A source of members that meet may be opened again.
TEST_F(DataRecallsTest, ANodeInAPassThatAsksForItsPassDoesNotWait) {
  passes_ = 2;
  pass_ = 0;
  Ask(2, 3);
  pass_.reset();
  EXPECT_FALSE(Waits(2));
}

// A restarted scheduler does not know the holders, and takes the request for a question.
TEST_F(DataRecallsTest, AHolderThatARestartedSchedulerDoesNotKnowIsInNoPass) {
  passes_ = 2;
  Ask(2, 3);
  Restart();
  EXPECT_FALSE(Waits(2));
  // Its first request may be a late copy.
  for (int i = 0; i < 2; ++i) {
    now_ += DataDispatcher::kLease;
    Tick();
    ASSERT_THAT(Ask(2, 1), Not(IsEmpty()));
  }
  EXPECT_TRUE(Waits(2));
}

}  // namespace
}  // namespace covey::scheduler
