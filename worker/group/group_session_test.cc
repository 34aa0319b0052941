// SPDX-License-Identifier: Apache-2.0
#include "worker/group/group_session.h"

#include <set>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "worker/group/communicator.h"
#include "worker/testing/ring_fixture.h"

namespace covey::worker {
namespace {

using State = GroupSession::State;

constexpr State kStates[] = {State::kWithoutGroup, State::kMeeting, State::kReady, State::kStopped,
                             State::kFailed};

// The diagram of group_session.h.
const std::set<std::pair<State, State>> kArrows = {
    {State::kWithoutGroup, State::kMeeting}, {State::kWithoutGroup, State::kFailed},
    {State::kMeeting, State::kReady},        {State::kMeeting, State::kStopped},
    {State::kMeeting, State::kMeeting},      {State::kMeeting, State::kWithoutGroup},
    {State::kMeeting, State::kFailed},       {State::kReady, State::kStopped},
    {State::kReady, State::kMeeting},        {State::kReady, State::kWithoutGroup},
    {State::kReady, State::kFailed},         {State::kStopped, State::kMeeting},
    {State::kStopped, State::kWithoutGroup}, {State::kStopped, State::kFailed},
};

TEST(GroupSessionTest, OnlyTheArrowsOfTheDiagramAreLegal) {
  for (const State from : kStates) {
    for (const State to : kStates) {
      EXPECT_EQ(GroupSession::IsLegal(from, to), kArrows.contains({from, to}))
          << static_cast<int>(from) << " to " << static_cast<int>(to);
    }
  }
}

// One member alone needs no message of others: each call leads where the diagram says.
class AloneTest : public ::testing::Test {
 protected:
  AloneTest() : session_({.rendezvous = RendezvousMode::kAgreed}, plan_) {
    plan_.SetView(NodeId(Ring::kFirstNode), *ClusterView::Make(Ring::ActiveView(1)));
  }

  const proto::Group& group() { return plan_.view().proto().groups(0); }
  void Begin() {
    plan_.Follow(GroupId(0), Ring::kGeneration, {NodeId(Ring::kFirstNode)});
    session_.Begin(now_, group(), 0, outbox_);
  }
  void BeginAndMeet() {
    Begin();
    session_.Meet(now_, outbox_);
  }

  const absl::Time now_ = absl::UnixEpoch();
  PlanFollower plan_;
  Outbox outbox_;
  GroupSession session_;
};

TEST_F(AloneTest, ASessionMeetsIsReadyStopsAndMeetsAgain) {
  EXPECT_EQ(session_.state(), State::kWithoutGroup);
  Begin();
  EXPECT_EQ(session_.state(), State::kMeeting);
  session_.Meet(now_, outbox_);
  EXPECT_EQ(session_.state(), State::kReady);
  EXPECT_TRUE(session_.Interrupt(now_, absl::UnavailableError("lost"), outbox_));
  EXPECT_EQ(session_.state(), State::kStopped);
  BeginAndMeet();
  EXPECT_EQ(session_.state(), State::kReady);
  BeginAndMeet();  // An orderly change.
  EXPECT_EQ(session_.state(), State::kReady);
  session_.End();
  EXPECT_EQ(session_.state(), State::kWithoutGroup);
}

TEST_F(AloneTest, AMeetingThatIsSupersededWaitsForAnotherPlan) {
  Begin();
  session_.Supersede(outbox_);
  EXPECT_EQ(session_.state(), State::kStopped);
  session_.Meet(now_, outbox_);
  EXPECT_EQ(session_.state(), State::kStopped);
  session_.End();
  EXPECT_EQ(session_.state(), State::kWithoutGroup);
}

TEST_F(AloneTest, AFailureIsForGood) {
  session_.Abort(now_, absl::AbortedError("nothing to abort"), outbox_);
  EXPECT_EQ(session_.state(), State::kWithoutGroup);
  BeginAndMeet();
  session_.Abort(now_, absl::AbortedError("first"), outbox_);
  session_.Fail(now_, absl::AbortedError("second"), outbox_);
  EXPECT_EQ(session_.state(), State::kFailed);
  EXPECT_EQ(session_.engine().failure().message(), "first");
  absl::Status outcome;
  session_.engine().Start(now_,
                          {.id = session_.engine().NextPlain(),
                           .done = [&outcome](absl::Time, const CollectiveResult& result,
                                              Outbox&) { outcome = result.status; }},
                          outbox_);
  EXPECT_EQ(outcome.message(), "first");
}

}  // namespace
}  // namespace covey::worker
