// SPDX-License-Identifier: Apache-2.0

// DataDispatcher, with members that meet at the end of each pass.

#include <algorithm>
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

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

// Three passes over 10 examples in items of 5. Workers 2 and 3 are a group, and so are 4 and 5.
class DataPassesTest : public ::testing::Test {
 protected:
  DataPassesTest() {
    proto::ClusterView& view = *state_.mutable_view();
    for (uint64_t id = 2; id <= 5; ++id) {
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
      group.add_members(2 * id);
      group.add_members(2 * id + 1);
    }
    Restart();
  }

  // The scheduler restarts from its log; all nodes so far are from before.
  void Restart(absl::Duration heard_after = absl::ZeroDuration()) {
    state_.record().set_next_node(10);
    dispatcher_.emplace(state_);
    dispatcher_->Start(now_, now_ + heard_after);
  }

  proto::WorkRequest Request(std::optional<uint64_t> pass, uint32_t wanted) {
    proto::WorkRequest request;
    request.set_name("digits");
    request.set_examples(10);
    request.set_item_examples(5);
    request.set_passes(3);
    request.set_wanted(wanted);
    if (pass) request.set_pass(*pass);
    return request;
  }
  // The only reply.
  DataDispatcher::Answer Send(uint64_t node, const proto::WorkRequest& request, uint64_t id = 0) {
    Message message;
    message.envelope.mutable_header()->set_node(node);
    message.envelope.mutable_header()->set_request_id(id == 0 ? ++last_id_ : id);
    *message.envelope.mutable_work_request() = request;
    std::vector<DataDispatcher::Answer> answers;
    dispatcher_->OnRequest(now_, message, answers);
    EXPECT_EQ(answers.size(), 1u);
    return answers.empty() ? DataDispatcher::Answer() : answers.back();
  }
  std::vector<std::string> Items(uint64_t node, uint64_t pass, uint32_t wanted, uint64_t id = 0) {
    const DataDispatcher::Answer answer = Send(node, Request(pass, wanted), id);
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    std::vector<std::string> items;
    for (const proto::WorkItem& item : answer.reply.items()) {
      items.push_back(absl::StrCat(item.pass(), ":", item.first(), "+", item.count()));
    }
    return items;
  }
  proto::WorkReply Report(uint64_t node, const proto::WorkItem& finished) {
    proto::WorkRequest request = Request(finished.pass(), 0);
    *request.add_finished() = finished;
    now_ += DataDispatcher::kRecordInterval;
    return Send(node, request).reply;
  }
  // All examples of the pass are given to the node, and finished by it.
  void FinishPass(uint64_t node, uint64_t pass) {
    Items(node, pass, 9);
    EXPECT_EQ(Report(node, Item(pass, 0, 10)).passes_finished(), pass + 1);
  }
  // In which pass the scheduler lets a new member begin; -1 = it does not know yet.
  int PassOf(uint64_t node, uint64_t id = 0) {
    const DataDispatcher::Answer answer = Send(node, Request(std::nullopt, 0), id);
    if (absl::IsUnavailable(answer.status)) return -1;
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    return static_cast<int>(answer.reply.group_pass());
  }
  void Depart(uint64_t node) {
    std::vector<DataDispatcher::Answer> answers;
    dispatcher_->OnDeparture(now_, NodeId(node), answers);
    proto::ClusterView& view = *state_.mutable_view();
    for (proto::Group& group : *view.mutable_groups()) {
      auto& members = *group.mutable_members();
      members.erase(std::remove(members.begin(), members.end(), node), members.end());
    }
  }

  TestState state_;
  std::optional<DataDispatcher> dispatcher_;
  absl::Time now_ = kStart;
  uint64_t last_id_ = 0;
};

TEST_F(DataPassesTest, GivesItemsOfTheNamedPassOnly) {
  EXPECT_THAT(Items(2, 0, 9), ElementsAre("0:0+5", "0:5+5"));
  EXPECT_THAT(Items(3, 0, 9), IsEmpty());
  EXPECT_THAT(Items(3, 1, 9), IsEmpty()) << "a pass does not begin before the one before ends";
  EXPECT_EQ(Report(2, Item(0, 0, 10)).passes_finished(), 1u);
  EXPECT_THAT(Items(2, 0, 9), IsEmpty()) << "it is still in the first pass";
  EXPECT_THAT(Items(3, 1, 1), ElementsAre("1:0+5"));
  // A member that does not name a pass takes items of any.
  proto::WorkRequest any = Request(std::nullopt, 2);
  EXPECT_EQ(Send(4, any).reply.items(1).pass(), 2u);
}

TEST_F(DataPassesTest, TheEndOfAPassIsRecordedAtOnce) {
  Items(2, 0, 1);
  Items(3, 0, 1);
  Report(2, Item(0, 0, 5));
  proto::WorkRequest last = Request(0, 0);
  *last.add_finished() = Item(0, 5, 4);
  Message message;
  message.envelope.mutable_header()->set_node(3);
  message.envelope.mutable_header()->set_request_id(100);
  *message.envelope.mutable_work_request() = last;
  std::vector<DataDispatcher::Answer> answers;
  dispatcher_->OnRequest(now_, message, answers);
  EXPECT_THAT(answers, IsEmpty());
  EXPECT_EQ(dispatcher_->NextTick(), now_ + DataDispatcher::kLastRecordInterval);
  *last.mutable_finished(0) = Item(0, 9, 1);
  const proto::WorkReply reply = Send(3, last, 101).reply;
  EXPECT_EQ(reply.passes_finished(), 1u);
  EXPECT_EQ(reply.examples_finished(), 10u);
  EXPECT_FALSE(reply.done());
}

TEST_F(DataPassesTest, ANewMemberBeginsInThePassOfItsGroupOrElseOfTheJob) {
  EXPECT_EQ(PassOf(4), 0);
  FinishPass(2, 0);
  EXPECT_EQ(PassOf(3), 0) << "the group has not gone on yet";
  Items(2, 1, 1);
  EXPECT_EQ(Send(3, Request(0, 1)).reply.group_pass(), 1u) << "now it has";
  EXPECT_EQ(PassOf(3), 1);
  EXPECT_EQ(PassOf(5), 0) << "the other group is where it was";
  Depart(4);
  Depart(5);
  state_.mutable_view()->mutable_groups(1)->add_members(6);
  EXPECT_EQ(PassOf(6), 1) << "nobody of its group has named a pass";
}

TEST_F(DataPassesTest, AllMembersOfANewGroupBeginInOnePass) {
  EXPECT_EQ(PassOf(4), 0);
  FinishPass(2, 0);
  EXPECT_EQ(PassOf(5), 0);
  EXPECT_EQ(Send(5, Request(0, 1)).reply.passes_finished(), 1u);
}

TEST_F(DataPassesTest, ADeadMemberTakesItsPassAndFreesItsItems) {
  FinishPass(2, 0);
  FinishPass(2, 1);
  Items(2, 2, 2);
  Depart(2);
  EXPECT_THAT(Items(3, 1, 9), IsEmpty()) << "not of a pass that it has not named";
  EXPECT_EQ(Send(3, Request(1, 1)).reply.group_pass(), 1u);
  EXPECT_THAT(Items(4, 2, 9), ElementsAre("2:0+5", "2:5+5"));
}

TEST_F(DataPassesTest, AfterARestartANewMemberWaitsUntilItsGroupIsHeard) {
  FinishPass(2, 0);
  Items(2, 0, 1);
  Items(3, 0, 1);
  Restart();
  EXPECT_EQ(PassOf(2, 90), -1) << "worker-3 may be in a pass";
  // Worker-3 still has to meet the others at the end of the first pass.
  EXPECT_THAT(Items(3, 0, 1), IsEmpty());
  EXPECT_EQ(PassOf(2, 90), 0);
  Restart();
  EXPECT_EQ(PassOf(2), -1);
  EXPECT_EQ(PassOf(3), 1) << "neither knows, so they are where the job is";
  EXPECT_EQ(PassOf(2), 1);
  Restart();
  EXPECT_EQ(PassOf(2), -1);
  Depart(3);
  EXPECT_EQ(PassOf(2), 1);
  Restart();
  EXPECT_EQ(PassOf(4), -1);
  now_ += DataDispatcher::kLease;
  EXPECT_EQ(PassOf(4), 1) << "a member that is silent for this duration does not use the data set";
}

TEST_F(DataPassesTest, AMemberThatMayBeSilentYetIsWaitedFor) {
  FinishPass(2, 0);
  Restart(2 * DataDispatcher::kLease);
  now_ += DataDispatcher::kLease;
  EXPECT_EQ(PassOf(2), -1) << "worker-3 may be cut off, and has yet to meet the others";
  EXPECT_THAT(Items(3, 0, 1), IsEmpty());
  EXPECT_EQ(PassOf(2), 0);
  Restart(2 * DataDispatcher::kLease);
  now_ += 2 * DataDispatcher::kLease;
  EXPECT_EQ(PassOf(2), 1) << "worker-3 lives, and does not use the data set";
}

TEST_F(DataPassesTest, AMemberThatKeepsItsPassOverARestartGetsTheRestOfIt) {
  FinishPass(2, 0);
  EXPECT_THAT(Items(2, 1, 1), ElementsAre("1:0+5"));
  Report(2, Item(1, 0, 3));
  Restart();
  EXPECT_THAT(Items(3, 1, 9), IsEmpty()) << "the scheduler does not know who holds the rest";
  EXPECT_EQ(Report(2, Item(1, 3, 2)).group_pass(), 1u);
  now_ += DataDispatcher::kLease;
  std::vector<DataDispatcher::Answer> answers;
  dispatcher_->Tick(now_, answers);
  EXPECT_THAT(Items(3, 1, 9), ElementsAre("1:5+5"));
  EXPECT_EQ(Report(3, Item(1, 5, 5)).passes_finished(), 2u);
}

TEST_F(DataPassesTest, ALateCopyOfARequestForAnOlderPassGetsNothing) {
  Items(2, 0, 1, 50);
  EXPECT_EQ(PassOf(2, 51), 0);
  Report(2, Item(0, 0, 5));
  Items(3, 0, 1);
  Report(3, Item(0, 5, 5));
  Send(2, Request(1, 0), 60);
  EXPECT_THAT(Items(2, 0, 1, 50), IsEmpty());
  EXPECT_EQ(PassOf(2, 51), 1) << "the copy does not take it back";
  EXPECT_THAT(Items(2, 1, 1, 61), ElementsAre("1:0+5"));
}

TEST_F(DataPassesTest, AMemberThatLeavesFreesItsItemsAndHasNoPass) {
  Items(2, 0, 1);
  Send(2, Request(3, 0));
  EXPECT_THAT(Items(4, 0, 9), ElementsAre("0:0+5", "0:5+5"));
  Report(4, Item(0, 0, 10));
  EXPECT_EQ(PassOf(3), 1);
  EXPECT_THAT(Items(2, 3, 9), IsEmpty());
  EXPECT_THAT(std::string(Send(2, Request(4, 1)).status.message()), HasSubstr("beyond the end"));
}

// Otherwise a data set that is never done would hold up each snapshot.
TEST_F(DataPassesTest, ACutDoesNotWaitForMembersBetweenTwoPasses) {
  const auto end_pass = [this](uint64_t pass, uint64_t step) {
    Items(2, pass, 9);
    proto::WorkRequest last = Request(pass, 0);
    *last.add_finished() = Item(pass, 0, 10);
    last.mutable_finished(0)->set_step(step);
    last.set_finished_step(step);
    Send(2, last);
  };
  end_pass(0, 4);
  ASSERT_TRUE(dispatcher_->BeginCut({{GroupId(1), 9}}).ok());
  EXPECT_THAT(dispatcher_->CutWaitsFor(), HasSubstr("worker-2"));
  Send(2, Request(1, 0));
  EXPECT_EQ(dispatcher_->CutWaitsFor(), "");
  Items(2, 1, 1);
  EXPECT_THAT(dispatcher_->CutWaitsFor(), HasSubstr("worker-2")) << "it may train until step 9";
  Send(2, Request(3, 0));
  EXPECT_EQ(dispatcher_->CutWaitsFor(), "") << "it has left";
  dispatcher_->EndCut();
  // What it told before is not forgotten.
  EXPECT_FALSE(dispatcher_->BeginCut({{GroupId(1), 3}}).ok());
}

}  // namespace
}  // namespace covey::scheduler
