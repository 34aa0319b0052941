// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/member.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/cluster/limits.h"
#include "common/net/message.h"

namespace covey {
namespace {

using ::testing::HasSubstr;

constexpr absl::Time kStart = absl::UnixEpoch();

class MemberTest : public ::testing::Test {
 protected:
  MemberTest()
      : member_({.job_name = "job",
                 .role = proto::WORKER,
                 .rank = 2,
                 .endpoints = {"tcp://127.0.0.1:9"},
                 .data_key = "key"},
                next_request_id_) {
    member_.OnChange([this](absl::Time, Outbox&) { ++changes_; });
  }

  // The messages that the member sent, by body.
  std::vector<Message> Sent(proto::Envelope::BodyCase body) {
    std::vector<Message> found;
    for (Message& message : outbox_.TakeMessages()) {
      if (message.envelope.body_case() == body) found.push_back(std::move(message));
    }
    return found;
  }

  void Refuse(const Message& request, absl::Status status) {
    Message reply = MakeReply(request);
    reply.envelope.mutable_register_reply();
    SetStatus(status, reply);
    member_.Receive(now_, reply, outbox_);
  }

  void Register() {
    member_.Wake(now_, outbox_);
    const std::vector<Message> sent = Sent(proto::Envelope::kRegisterRequest);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].envelope.register_request().data_key(), "key");
    Message reply = MakeReply(sent[0]);
    proto::RegisterReply& body = *reply.envelope.mutable_register_reply();
    body.set_node(7);
    body.set_rank(2);
    body.set_heartbeat_ms(500);
    body.mutable_view()->set_epoch(3);
    member_.Receive(now_, reply, outbox_);
  }

  absl::Time now_ = kStart;
  uint64_t next_request_id_ = 1;
  int changes_ = 0;
  Outbox outbox_;
  Member member_;
};

TEST_F(MemberTest, RegistersThenBeatsAndWatches) {
  Register();
  EXPECT_EQ(member_.state(), Member::State::kMember);
  EXPECT_EQ(member_.node(), NodeId(7));
  EXPECT_EQ(member_.rank(), 2u);
  EXPECT_EQ(changes_, 1);
  const std::vector<Message> watch = Sent(proto::Envelope::kWatchViewRequest);
  ASSERT_EQ(watch.size(), 1u);
  EXPECT_EQ(watch[0].envelope.watch_view_request().known_epoch(), 3u);

  now_ += absl::Milliseconds(500);
  EXPECT_LE(member_.NextWake(), now_);
  member_.Wake(now_, outbox_);
  EXPECT_EQ(Sent(proto::Envelope::kHeartbeatRequest).size(), 1u);

  Message newer = MakeReply(watch[0]);
  newer.envelope.mutable_watch_view_reply()->mutable_view()->set_epoch(4);
  member_.Receive(now_, newer, outbox_);
  EXPECT_EQ(member_.view()->epoch(), Epoch(4));
  EXPECT_EQ(changes_, 2);
  EXPECT_EQ(Sent(proto::Envelope::kWatchViewRequest).size(), 1u);
}

// A node's change, to be applied to the view of epoch `since`.
proto::ViewChange Change(uint64_t since, uint64_t to, uint64_t node) {
  proto::ViewChange change;
  change.set_since(since);
  change.mutable_changed()->set_epoch(to);
  change.mutable_changed()->add_nodes()->set_id(node);
  return change;
}

TEST_F(MemberTest, FollowsChangesOfTheViewThatItHolds) {
  Register();
  for (uint64_t epoch = 3; epoch < 6; ++epoch) {
    const std::vector<Message> watch = Sent(proto::Envelope::kWatchViewRequest);
    ASSERT_EQ(watch.size(), 1u);
    EXPECT_EQ(watch[0].envelope.watch_view_request().known_epoch(), epoch);
    EXPECT_TRUE(watch[0].envelope.watch_view_request().takes_changes());
    Message news = MakeReply(watch[0]);
    *news.envelope.mutable_watch_view_reply()->mutable_change() =
        Change(epoch, epoch + 1, 10 + epoch);
    member_.Receive(now_, news, outbox_);
    EXPECT_EQ(member_.view()->epoch(), Epoch(epoch + 1));
    EXPECT_NE(member_.view()->FindNode(NodeId(10 + epoch)), nullptr);
  }
  EXPECT_NE(member_.view()->FindNode(NodeId(13)), nullptr);
  EXPECT_EQ(changes_, 4);
}

TEST_F(MemberTest, AsksForTheWholeViewAfterAChangeThatDoesNotFit) {
  Register();
  proto::ViewChange broken = Change(3, 4, 10);
  broken.mutable_changed()->add_nodes()->set_id(10);
  proto::ViewChange refused_by_the_view = Change(3, 4, 10);
  refused_by_the_view.mutable_changed()->add_groups()->add_members(77);
  for (const proto::ViewChange& change : {Change(2, 4, 10), broken, refused_by_the_view}) {
    const std::vector<Message> watch = Sent(proto::Envelope::kWatchViewRequest);
    ASSERT_EQ(watch.size(), 1u);
    Message news = MakeReply(watch[0]);
    *news.envelope.mutable_watch_view_reply()->mutable_change() = change;
    member_.Receive(now_, news, outbox_);
    EXPECT_EQ(member_.view()->epoch(), Epoch(3));
    const std::vector<Message> whole = Sent(proto::Envelope::kWatchViewRequest);
    ASSERT_EQ(whole.size(), 1u);
    EXPECT_FALSE(whole[0].envelope.watch_view_request().takes_changes());
    // The view that the node has already: it goes on with changes.
    Message view = MakeReply(whole[0]);
    view.envelope.mutable_watch_view_reply()->mutable_view()->set_epoch(3);
    member_.Receive(now_, view, outbox_);
  }
  const std::vector<Message> watch = Sent(proto::Envelope::kWatchViewRequest);
  ASSERT_EQ(watch.size(), 1u);
  EXPECT_TRUE(watch[0].envelope.watch_view_request().takes_changes());
}

// The view came meanwhile with the reply to another request.
TEST_F(MemberTest, AChangeToAViewThatItHasIsNoNews) {
  Register();
  const std::vector<Message> watch = Sent(proto::Envelope::kWatchViewRequest);
  proto::ClusterView view;
  view.set_epoch(5);
  member_.Adopt(now_, view, outbox_);
  Message news = MakeReply(watch[0]);
  *news.envelope.mutable_watch_view_reply()->mutable_change() = Change(3, 5, 10);
  member_.Receive(now_, news, outbox_);
  EXPECT_EQ(member_.view()->FindNode(NodeId(10)), nullptr);
  const std::vector<Message> next = Sent(proto::Envelope::kWatchViewRequest);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].envelope.watch_view_request().known_epoch(), 5u);
  EXPECT_TRUE(next[0].envelope.watch_view_request().takes_changes());
}

TEST_F(MemberTest, IsAMemberOnceItKnowsAView) {
  member_.Wake(now_, outbox_);
  Message reply = MakeReply(Sent(proto::Envelope::kRegisterRequest)[0]);
  reply.envelope.mutable_register_reply()->set_node(7);
  member_.Receive(now_, reply, outbox_);
  EXPECT_EQ(member_.state(), Member::State::kRegistering);
  EXPECT_EQ(changes_, 1) << "the loop learns its node id";
  const std::vector<Message> watch = Sent(proto::Envelope::kWatchViewRequest);
  ASSERT_EQ(watch.size(), 1u);
  EXPECT_EQ(watch[0].envelope.watch_view_request().known_epoch(), 0u);
  Message view = MakeReply(watch[0]);
  view.envelope.mutable_watch_view_reply()->mutable_view()->set_epoch(9);
  member_.Receive(now_, view, outbox_);
  EXPECT_EQ(member_.state(), Member::State::kMember);
  EXPECT_EQ(member_.view()->epoch(), Epoch(9));
  EXPECT_EQ(changes_, 2);
}

TEST_F(MemberTest, RepeatsARegistrationUnderTheSameRequestId) {
  member_.Wake(now_, outbox_);
  const std::vector<Message> first = Sent(proto::Envelope::kRegisterRequest);
  now_ = member_.NextWake();
  member_.Wake(now_, outbox_);
  const std::vector<Message> second = Sent(proto::Envelope::kRegisterRequest);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(first[0].envelope.header().request_id(), second[0].envelope.header().request_id());
}

TEST_F(MemberTest, KeepsTryingWhileTheSchedulerIsAwayThenSaysWhy) {
  for (int i = 0; i < 200 && member_.state() == Member::State::kRegistering; ++i) {
    now_ = std::max(now_, member_.NextWake());
    member_.Wake(now_, outbox_);
    for (const Message& request : Sent(proto::Envelope::kRegisterRequest)) {
      Refuse(request, absl::UnavailableError("nobody listens on 127.0.0.1:1"));
    }
  }
  EXPECT_EQ(member_.state(), Member::State::kFailed);
  EXPECT_GE(now_, kStart + absl::Seconds(30));
  EXPECT_EQ(member_.failure().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(member_.failure().message()), HasSubstr("nobody listens"));
}

TEST_F(MemberTest, ARefusalIsFinal) {
  member_.Wake(now_, outbox_);
  Refuse(Sent(proto::Envelope::kRegisterRequest)[0], absl::FailedPreconditionError("job is full"));
  EXPECT_EQ(member_.state(), Member::State::kFailed);
  EXPECT_EQ(member_.failure().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(member_.NextWake(), absl::InfiniteFuture());
}

TEST_F(MemberTest, GetsATakenRankOnceItsHolderIsKnownToBeDead) {
  member_.Wake(now_, outbox_);
  Refuse(Sent(proto::Envelope::kRegisterRequest)[0], absl::AlreadyExistsError("rank 2 is taken"));
  EXPECT_EQ(member_.state(), Member::State::kRegistering);
  now_ = member_.NextWake();
  EXPECT_LT(now_, kStart + absl::Seconds(1));
  Register();
  EXPECT_EQ(member_.state(), Member::State::kMember);
}

// A frozen holder, whose death only its silence shows.
TEST_F(MemberTest, WaitsForATakenRankUntilShortlyBeforeItsDeadline) {
  while (now_ < kStart + absl::Seconds(28)) {
    ASSERT_EQ(member_.state(), Member::State::kRegistering);
    member_.Wake(now_, outbox_);
    for (const Message& request : Sent(proto::Envelope::kRegisterRequest)) {
      Refuse(request, absl::AlreadyExistsError("rank 2 is taken"));
    }
    now_ = std::max(now_, member_.NextWake());
  }
  EXPECT_LE(now_, kStart + absl::Seconds(29)) << "asks at least once per second";
  Register();
  EXPECT_EQ(member_.state(), Member::State::kMember);
}

TEST_F(MemberTest, ARankWhoseHolderLivesUntilTheDeadlineIsNotGiven) {
  for (int i = 0; i < 200 && member_.state() == Member::State::kRegistering; ++i) {
    now_ = std::max(now_, member_.NextWake());
    member_.Wake(now_, outbox_);
    for (const Message& request : Sent(proto::Envelope::kRegisterRequest)) {
      Refuse(request, absl::AlreadyExistsError("rank 2 is taken"));
    }
  }
  EXPECT_EQ(member_.state(), Member::State::kFailed);
  EXPECT_EQ(now_, kStart + absl::Seconds(30));
  EXPECT_EQ(member_.failure().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(member_.failure().message(), "not registered within 30s: rank 2 is taken");
}

TEST_F(MemberTest, StopsWhenDeclaredDead) {
  Register();
  now_ += absl::Milliseconds(500);
  member_.Wake(now_, outbox_);
  Message reply = MakeReply(Sent(proto::Envelope::kHeartbeatRequest)[0]);
  reply.envelope.mutable_heartbeat_reply();
  SetStatus(absl::AbortedError("declared dead at epoch 9"), reply);
  member_.Receive(now_, reply, outbox_);
  EXPECT_EQ(member_.state(), Member::State::kFailed);
}

TEST_F(MemberTest, StopsWhenItsCertificateIsRefused) {
  Register();
  outbox_.TakeMessages();
  now_ += absl::Milliseconds(500);
  member_.Wake(now_, outbox_);
  const std::vector<Message> beats = Sent(proto::Envelope::kHeartbeatRequest);
  ASSERT_EQ(beats.size(), 1u);
  Message reply = MakeReply(beats[0]);
  reply.envelope.mutable_heartbeat_reply();
  SetStatus(absl::UnauthenticatedError("the certificate was revoked"), reply);
  member_.Receive(now_, reply, outbox_);
  EXPECT_EQ(member_.state(), Member::State::kFailed);
  EXPECT_THAT(std::string(member_.failure().message()), HasSubstr("was revoked"));
}

TEST_F(MemberTest, AnUnansweredBeatIsFollowedByOneMore) {
  Register();
  Sent(proto::Envelope::kHeartbeatRequest);
  const auto beat = [this] {
    now_ = member_.NextWake();
    member_.Wake(now_, outbox_);
    return Sent(proto::Envelope::kHeartbeatRequest);
  };
  const absl::Time first_at = kStart + absl::Milliseconds(500);
  const std::vector<Message> first = beat();
  ASSERT_EQ(1u, first.size());
  EXPECT_EQ(first_at, now_);
  const std::vector<Message> second = beat();
  ASSERT_EQ(1u, second.size());
  EXPECT_EQ(first_at + absl::Milliseconds(250), now_);
  EXPECT_NE(first[0].envelope.header().request_id(), second[0].envelope.header().request_id());
  // The next heartbeat is sent when it is due, and is the last one if it is answered.
  const std::vector<Message> third = beat();
  ASSERT_EQ(1u, third.size());
  EXPECT_EQ(first_at + absl::Milliseconds(500), now_);
  Message reply = MakeReply(third[0]);
  reply.envelope.mutable_heartbeat_reply();
  member_.Receive(now_, reply, outbox_);
  beat();
  EXPECT_EQ(first_at + absl::Milliseconds(1000), now_);
}

// So the lease never ends later than the scheduler thinks, however late the reply.
TEST_F(MemberTest, ALeaseCountsFromTheRequestThatWasAnswered) {
  Register();
  EXPECT_EQ(member_.lease_until(), absl::InfiniteFuture()) << "the scheduler said nothing of one";
  now_ = member_.NextWake();
  member_.Wake(now_, outbox_);
  const absl::Time sent = now_;
  Message reply = MakeReply(Sent(proto::Envelope::kHeartbeatRequest)[0]);
  reply.envelope.mutable_heartbeat_reply()->set_lease_ms(3000);
  now_ += absl::Milliseconds(200);
  member_.Receive(now_, reply, outbox_);
  EXPECT_EQ(member_.lease_until(), sent + absl::Seconds(3));

  now_ = member_.NextWake();
  member_.Wake(now_, outbox_);
  reply = MakeReply(Sent(proto::Envelope::kHeartbeatRequest)[0]);
  SetStatus(absl::UnavailableError("cannot write the log"), reply);
  member_.Receive(now_, reply, outbox_);
  EXPECT_EQ(member_.lease_until(), sent + absl::Seconds(3)) << "a refusal is no answer";
}

// A network whose round trip is longer than the pause before a heartbeat is repeated.
TEST_F(MemberTest, AnAnswerThatComesAfterTheNextBeatExtendsTheLeaseFromItsOwnBeat) {
  Register();
  Sent(proto::Envelope::kHeartbeatRequest);
  std::vector<Message> beats;
  std::vector<absl::Time> sent_at;
  for (int i = 0; i < 3; ++i) {
    now_ = member_.NextWake();
    member_.Wake(now_, outbox_);
    beats.push_back(Sent(proto::Envelope::kHeartbeatRequest).at(0));
    sent_at.push_back(now_);
  }
  const auto answer = [&](int beat) {
    Message reply = MakeReply(beats[beat]);
    reply.envelope.mutable_heartbeat_reply()->set_lease_ms(3000);
    member_.Receive(now_, reply, outbox_);
  };
  now_ = sent_at[0] + absl::Milliseconds(300);
  answer(0);
  EXPECT_EQ(member_.lease_until(), sent_at[0] + absl::Seconds(3));
  answer(2);
  EXPECT_EQ(member_.lease_until(), sent_at[2] + absl::Seconds(3));
  answer(1);
  EXPECT_EQ(member_.lease_until(), sent_at[2] + absl::Seconds(3)) << "a newer one was answered";
  answer(1);  // An answer that arrives twice.
  EXPECT_EQ(member_.lease_until(), sent_at[2] + absl::Seconds(3));
}

TEST_F(MemberTest, ALateAnswerDoesNotStopTheRepetitionOfTheNewestBeat) {
  Register();
  const auto beat = [this] {
    now_ = member_.NextWake();
    member_.Wake(now_, outbox_);
    return Sent(proto::Envelope::kHeartbeatRequest).at(0);
  };
  Sent(proto::Envelope::kHeartbeatRequest);
  beat();
  const Message repeated = beat();
  beat();
  const absl::Time due = member_.NextWake();
  Message reply = MakeReply(repeated);
  reply.envelope.mutable_heartbeat_reply();
  member_.Receive(now_, reply, outbox_);
  EXPECT_EQ(member_.NextWake(), due);
}

TEST_F(MemberTest, ALateAnswerStillSaysThatTheMemberWasDeclaredDead) {
  Register();
  Sent(proto::Envelope::kHeartbeatRequest);
  now_ = member_.NextWake();
  member_.Wake(now_, outbox_);
  Message reply = MakeReply(Sent(proto::Envelope::kHeartbeatRequest).at(0));
  now_ = member_.NextWake();
  member_.Wake(now_, outbox_);
  reply.envelope.mutable_heartbeat_reply();
  SetStatus(absl::AbortedError("declared dead at epoch 9"), reply);
  member_.Receive(now_, reply, outbox_);
  EXPECT_EQ(member_.state(), Member::State::kFailed);
}

TEST_F(MemberTest, AMemoryOfBeatsIsBounded) {
  Register();
  Sent(proto::Envelope::kHeartbeatRequest);
  std::vector<Message> beats;
  while (beats.size() <= kUnansweredBeatsMax) {
    now_ = member_.NextWake();
    member_.Wake(now_, outbox_);
    for (Message& beat : Sent(proto::Envelope::kHeartbeatRequest)) beats.push_back(std::move(beat));
  }
  for (const size_t answered : {size_t{0}, size_t{1}}) {
    Message reply = MakeReply(beats[answered]);
    reply.envelope.mutable_heartbeat_reply()->set_lease_ms(60000);
    member_.Receive(now_, reply, outbox_);
    EXPECT_EQ(member_.lease_until() == absl::InfiniteFuture(), answered == 0);
  }
}

TEST_F(MemberTest, NeverTakesAnOlderOrABrokenView) {
  Register();
  proto::ClusterView older;
  older.set_epoch(2);
  member_.Adopt(now_, older, outbox_);
  EXPECT_EQ(member_.view()->epoch(), Epoch(3));
  proto::ClusterView broken;
  broken.set_epoch(9);
  broken.add_groups()->set_id(1);  // without members
  member_.Adopt(now_, broken, outbox_);
  EXPECT_EQ(member_.view()->epoch(), Epoch(3));
}

TEST_F(MemberTest, HearingFirstThatItHasLeftIsNoFailure) {
  Register();
  now_ += absl::Milliseconds(500);
  member_.Wake(now_, outbox_);
  const std::vector<Message> beat = Sent(proto::Envelope::kHeartbeatRequest);
  member_.Leave(now_, "done", outbox_);
  Message reply = MakeReply(beat[0]);
  reply.envelope.mutable_heartbeat_reply();
  SetStatus(absl::AbortedError("left at epoch 9"), reply);
  member_.Receive(now_, reply, outbox_);
  EXPECT_EQ(member_.state(), Member::State::kLeft);
  EXPECT_TRUE(member_.failure().ok());
}

TEST_F(MemberTest, WatchesAgainAsSoonAsTheSchedulerIsBack) {
  Register();
  std::vector<Message> watches = Sent(proto::Envelope::kWatchViewRequest);
  // The scheduler is down for so many tries that the next one is far off.
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(watches.size(), 1u);
    Message failure = MakeReply(watches[0]);
    failure.envelope.mutable_watch_view_reply();
    SetStatus(absl::UnavailableError("nobody listens"), failure);
    member_.Receive(now_, failure, outbox_);
    if (i == 19) break;
    while (watches = Sent(proto::Envelope::kWatchViewRequest), watches.empty()) {
      now_ = std::max(now_, member_.NextWake());
      member_.Wake(now_, outbox_);
    }
  }
  EXPECT_TRUE(Sent(proto::Envelope::kWatchViewRequest).empty());
  now_ += absl::Microseconds(1);
  Message beat;
  while (!beat.envelope.has_heartbeat_request()) {
    now_ = std::max(now_, member_.NextWake());
    member_.Wake(now_, outbox_);
    for (Message& message : outbox_.TakeMessages()) {
      if (message.envelope.has_heartbeat_request()) {
        beat = std::move(message);
      } else {  // still down
        Message failure = MakeReply(message);
        failure.envelope.mutable_watch_view_reply();
        SetStatus(absl::UnavailableError("nobody listens"), failure);
        member_.Receive(now_, failure, outbox_);
      }
    }
  }
  Message reply = MakeReply(beat);
  reply.envelope.mutable_heartbeat_reply();
  member_.Receive(now_, reply, outbox_);
  EXPECT_EQ(Sent(proto::Envelope::kWatchViewRequest).size(), 1u);
}

TEST_F(MemberTest, SaysGoodbyeAgainToASchedulerThatIsAway) {
  Register();
  member_.Leave(now_, "done", outbox_);
  const std::vector<Message> first = Sent(proto::Envelope::kLeaveRequest);
  ASSERT_EQ(first.size(), 1u);
  Message away = MakeReply(first[0]);
  away.envelope.mutable_leave_reply();
  SetStatus(absl::UnavailableError("stands by"), away);
  member_.Receive(now_, away, outbox_);
  EXPECT_EQ(member_.state(), Member::State::kMember);
  std::vector<Message> second;
  while (second.empty()) {
    now_ = std::max(now_, member_.NextWake());
    member_.Wake(now_, outbox_);
    second = Sent(proto::Envelope::kLeaveRequest);
  }
  EXPECT_LT(now_, kStart + absl::Seconds(1));
  Message reply = MakeReply(second[0]);
  reply.envelope.mutable_leave_reply();
  member_.Receive(now_, reply, outbox_);
  EXPECT_EQ(member_.state(), Member::State::kLeft);
}

TEST_F(MemberTest, ABusySchedulerIsAskedAgain) {
  member_.Wake(now_, outbox_);
  Refuse(Sent(proto::Envelope::kRegisterRequest)[0], absl::ResourceExhaustedError("too many"));
  EXPECT_EQ(member_.state(), Member::State::kRegistering);
  now_ = member_.NextWake();
  EXPECT_LE(now_, kStart + absl::Seconds(1));
  member_.Wake(now_, outbox_);
  EXPECT_EQ(Sent(proto::Envelope::kRegisterRequest).size(), 1u);
}

// The scheduler has given the node duties that it does not know of.
TEST_F(MemberTest, AGoodbyeOfTheDayBeforeIsRepeatedUnderTheNewerView) {
  Register();
  Sent(proto::Envelope::kWatchViewRequest);
  member_.Leave(now_, "drained", outbox_);
  const std::vector<Message> first = Sent(proto::Envelope::kLeaveRequest);
  ASSERT_EQ(first.size(), 1u);
  now_ += absl::Milliseconds(1900);
  Message refusal = MakeReply(first[0]);
  refusal.envelope.mutable_leave_reply();
  SetStatus(absl::FailedPreconditionError("follow the newer view"), refusal);
  member_.Receive(now_, refusal, outbox_);
  const std::vector<Message> watch = Sent(proto::Envelope::kWatchViewRequest);
  ASSERT_EQ(watch.size(), 1u);
  EXPECT_EQ(member_.state(), Member::State::kMember);
  Message view = MakeReply(watch[0]);
  view.envelope.mutable_watch_view_reply()->mutable_view()->set_epoch(5);
  member_.Receive(now_, view, outbox_);
  now_ += absl::Milliseconds(500);
  member_.Wake(now_, outbox_);
  const std::vector<Message> second = Sent(proto::Envelope::kLeaveRequest);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].envelope.header().epoch(), 5u);
}

TEST_F(MemberTest, MayStayAfterAll) {
  Register();
  member_.Leave(now_, "drained", outbox_);
  const std::vector<Message> goodbye = Sent(proto::Envelope::kLeaveRequest);
  member_.Stay();
  for (int i = 0; i < 20; ++i) {
    now_ = std::max(now_, member_.NextWake());
    member_.Wake(now_, outbox_);
  }
  EXPECT_GT(now_, kStart + absl::Seconds(4));
  EXPECT_TRUE(Sent(proto::Envelope::kLeaveRequest).empty());
  Message late = MakeReply(goodbye[0]);
  late.envelope.mutable_leave_reply();
  member_.Receive(now_, late, outbox_);
  EXPECT_EQ(member_.state(), Member::State::kMember);
}

TEST_F(MemberTest, LeavesWithOrWithoutAnAnswer) {
  Register();
  member_.Leave(now_, "done", outbox_);
  EXPECT_EQ(Sent(proto::Envelope::kLeaveRequest).size(), 1u);
  EXPECT_EQ(member_.state(), Member::State::kMember);
  for (int i = 0; i < 20 && member_.state() == Member::State::kMember; ++i) {
    now_ = std::max(now_, member_.NextWake());
    member_.Wake(now_, outbox_);
  }
  EXPECT_EQ(member_.state(), Member::State::kLeft);
  EXPECT_LE(now_, kStart + absl::Seconds(3));
}

TEST_F(MemberTest, KeepsWhatTheNewestAnsweredBeatSaysOfAwayWorkers) {
  Register();
  const auto beat = [this] {
    now_ = member_.NextWake();
    member_.Wake(now_, outbox_);
    return Sent(proto::Envelope::kHeartbeatRequest).at(0);
  };
  const auto answer = [this](const Message& request, size_t workers, uint32_t left_ms) {
    Message reply = MakeReply(request);
    proto::HeartbeatReply& body = *reply.envelope.mutable_heartbeat_reply();
    for (size_t i = 0; i < workers; ++i) {
      proto::AwayWorker& worker = *body.add_away();
      worker.set_node(9);
      worker.mutable_away()->set_reason("evaluation");
      worker.mutable_away()->set_left_ms(left_ms);
    }
    member_.Receive(now_, reply, outbox_);
  };
  const Message first = beat();
  const Message second = beat();
  answer(second, 1, 60'000);
  ASSERT_EQ(member_.away().size(), 1u);
  EXPECT_EQ(member_.away()[0].node, NodeId(9));
  EXPECT_EQ(member_.away()[0].reason, "evaluation");
  EXPECT_EQ(member_.away()[0].until, now_ + absl::Minutes(1));
  answer(first, 0, 0);
  EXPECT_EQ(member_.away().size(), 1u) << "an older one";
  answer(beat(), 1000, ~uint32_t{0});
  EXPECT_EQ(member_.away().size(), kAwayToldMax + 1);
  EXPECT_EQ(member_.away()[0].until, now_ + kAwayMax);
  answer(beat(), 0, 0);
  EXPECT_TRUE(member_.away().empty());
}

}  // namespace
}  // namespace covey
