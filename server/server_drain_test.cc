// SPDX-License-Identifier: Apache-2.0
#include "server/server_drain.h"

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/net/message.h"
#include "common/runtime/member.h"
#include "gtest/gtest.h"

namespace covey::server {
namespace {

using State = ServerDrain::State;
using Arrows = std::set<std::pair<State, State>>;

// What the scheduler's view says of this server.
struct InView {
  bool holds_shard = false;
  bool draining = false;
  bool other_stays = true;
  // ClusterView.closing; absent = the job does not close.
  std::optional<std::string> closing = std::nullopt;
};

// Plays the scheduler by hand and notes the transitions of one server.
class Walk {
 public:
  Walk() : member_({.job_name = "test", .role = proto::SERVER}, request_id_) {
    for (const uint64_t id : {2, 3}) {
      proto::Node& node = *view_.add_nodes();
      node.set_id(id);
      node.set_name(id == 2 ? "server-0" : "server-1");
      node.set_role(proto::SERVER);
      node.set_state(proto::Node::ALIVE);
    }
    proto::Table& table = *view_.add_tables();
    table.set_id(1);
    table.mutable_spec()->add_shape(4);
    proto::Shard& shard = *table.add_shards();
    shard.set_element_count(4);
    shard.set_generation(1);
    shard.set_chain_epoch(1);
    shard.add_chain();
  }

  // Server 2 joins; its state is noted from here on.
  void Register(const InView& in_view) {
    member_.Wake(now_, outbox_);
    Message reply = MakeReply(outbox_.TakeMessages().at(0));
    proto::RegisterReply& body = *reply.envelope.mutable_register_reply();
    body.set_node(2);
    body.set_heartbeat_ms(500);
    *body.mutable_view() = NextView(in_view);
    member_.Receive(now_, reply, outbox_);
    Note();
  }
  void AdoptView(const InView& in_view) {
    member_.Adopt(now_, NextView(in_view), outbox_);
    Note();
  }
  void Begin() {
    outbox_.TakeMessages();
    drain_.Begin(now_, "signal 15", now_ + absl::Seconds(30), outbox_);
    Note();
  }
  void Answer(const absl::Status& status) {
    for (const Message& message : outbox_.TakeMessages()) {
      if (message.envelope.has_drain_request()) AnswerTo(message, status);
    }
  }
  void AnswerTo(const Message& request, const absl::Status& status) {
    Message reply = MakeReply(request);
    reply.envelope.mutable_drain_reply();
    SetStatus(status, reply);
    drain_.Receive(now_, reply, outbox_);
    Note();
  }
  // The only message since the last call.
  Message Request() { return outbox_.TakeMessages().at(0); }
  void Pass(absl::Duration time) {
    now_ += time;
    drain_.Wake(now_, outbox_);
    Note();
  }

  // The data loops that have not confirmed it yet hear that the lease is over; these confirm it.
  void Confirm(const std::set<uint32_t>& loops) {
    for (const Message& message : outbox_.TakeMessages()) {
      if (!message.envelope.has_lease_notice() || !loops.contains(message.to().loop)) continue;
      EXPECT_LE(message.envelope.lease_notice().until_ns(), absl::ToUnixNanos(now_));
      Message confirmation = MakeReply(message);
      *confirmation.envelope.mutable_lease_notice() = message.envelope.lease_notice();
      drain_.Receive(now_, confirmation, outbox_);
    }
    Note();
  }
  // A lease that ended before is confirmed.
  void ConfirmEarlierLease(uint32_t loop) {
    Message confirmation;
    confirmation.envelope.set_from_loop(loop);
    confirmation.envelope.mutable_lease_notice()->set_until_ns(
        absl::ToUnixNanos(now_ - absl::Seconds(40)));
    drain_.Receive(now_, confirmation, outbox_);
    Note();
  }
  // The server says goodbye once it has ended its lease.
  void ExpectGoodbye() {
    Expect(State::kStopping);
    Confirm({1, 2});
    Expect(State::kLeft);
    EXPECT_TRUE(Request().envelope.has_leave_request());
  }

  // Requests to be drained since the last call.
  size_t Asked() {
    size_t asked = 0;
    for (const Message& message : outbox_.TakeMessages()) {
      if (!message.envelope.has_drain_request()) continue;
      EXPECT_TRUE(message.envelope.drain_request().must_leave());
      ++asked;
    }
    return asked;
  }
  void Expect(State state) { EXPECT_EQ(static_cast<int>(state_), static_cast<int>(state)); }
  // One `from` to another at a time.
  const Arrows& walked() const { return walked_; }

 private:
  const proto::ClusterView& NextView(const InView& in_view) {
    view_.set_epoch(view_.epoch() + 1);
    view_.mutable_nodes(0)->set_draining(in_view.draining);
    view_.mutable_nodes(1)->set_draining(!in_view.other_stays);
    view_.clear_closing();
    if (in_view.closing) view_.mutable_closing()->set_snapshot(*in_view.closing);
    view_.mutable_tables(0)->mutable_shards(0)->mutable_chain(0)->set_node(in_view.holds_shard ? 2
                                                                                               : 3);
    return view_;
  }
  void Note() {
    drain_.FollowView(now_, outbox_);
    if (drain_.state() != state_) walked_.insert({state_, drain_.state()});
    state_ = drain_.state();
  }

  uint64_t request_id_ = 1;
  Member member_;
  ServerDrain drain_{member_, request_id_, 2};
  Outbox outbox_;
  absl::Time now_ = absl::UnixEpoch();
  proto::ClusterView view_;
  State state_ = State::kServing;
  Arrows walked_;
};

Arrows WalkDrainedAndWantedAgain() {
  Walk walk;
  walk.Register({.holds_shard = true});
  walk.Begin();
  walk.Expect(State::kAsking);
  walk.Answer(absl::OkStatus());
  walk.Expect(State::kDraining);
  walk.AdoptView({.draining = true});
  walk.Expect(State::kDrained);
  walk.AdoptView({.holds_shard = true});
  walk.Expect(State::kAsking);
  walk.AdoptView({.draining = true});
  walk.Expect(State::kDrained);
  return walk.walked();
}

Arrows WalkDrainedByAnother() {
  Walk walk;
  walk.Register({.holds_shard = true});
  walk.AdoptView({.holds_shard = true, .draining = true});
  walk.Expect(State::kServing);
  walk.AdoptView({.draining = true});
  walk.Expect(State::kDrained);
  walk.AdoptView({});
  walk.Expect(State::kServing);
  return walk.walked();
}

Arrows WalkLeavesBeforeItIsAMember() {
  Walk walk;
  walk.Begin();
  walk.Expect(State::kLeft);
  return walk.walked();
}

Arrows WalkRefused() {
  Walk walk;
  walk.Register({.holds_shard = true});
  walk.Begin();
  walk.Answer(absl::FailedPreconditionError("there is no other server"));
  walk.ExpectGoodbye();
  return walk.walked();
}

Arrows WalkTooLate() {
  Walk walk;
  walk.Register({.holds_shard = true});
  walk.Begin();
  walk.Answer(absl::OkStatus());
  walk.AdoptView({.holds_shard = true, .draining = true});
  walk.Pass(absl::Seconds(29));
  walk.Expect(State::kDraining);
  walk.Pass(absl::Seconds(1));
  walk.ExpectGoodbye();
  return walk.walked();
}

// The last servers leave together: they wait for the snapshot with the job's last state.
TEST(ServerDrain, LeavesWhenTheJobIsClosed) {
  Walk walk;
  walk.Register({.holds_shard = true});
  walk.Begin();
  walk.Answer(absl::OkStatus());
  walk.AdoptView({.holds_shard = true, .draining = true, .other_stays = false, .closing = ""});
  walk.Pass(absl::Seconds(20));
  walk.Expect(State::kDraining);
  walk.AdoptView({.holds_shard = true, .draining = true, .other_stays = false, .closing = "s"});
  walk.ExpectGoodbye();
}

TEST(ServerDrain, AsksAgainWhenTheOthersAreGone) {
  Walk walk;
  walk.Register({.holds_shard = true});
  walk.Begin();
  walk.Answer(absl::OkStatus());
  walk.AdoptView({.holds_shard = true, .draining = true});
  EXPECT_EQ(walk.Asked(), 0u);
  const InView alone = {.holds_shard = true, .draining = true, .other_stays = false};
  walk.AdoptView(alone);
  EXPECT_EQ(walk.Asked(), 1u);
  walk.AdoptView(alone);
  EXPECT_EQ(walk.Asked(), 0u) << "the scheduler has not replied yet";
  walk.Pass(absl::Milliseconds(500));
  walk.Expect(State::kDraining);
  walk.Answer(absl::FailedPreconditionError("there is no store"));
  walk.ExpectGoodbye();
}

TEST(ServerDrain, ASchedulerThatDiesBeforeItClosesTheJobIsNotWaitedFor) {
  Walk walk;
  walk.Register({.holds_shard = true});
  walk.Begin();
  walk.Answer(absl::OkStatus());
  walk.AdoptView({.holds_shard = true, .draining = true, .other_stays = false});
  walk.Pass(absl::Milliseconds(2900));
  walk.Expect(State::kDraining);
  walk.Pass(absl::Milliseconds(100));
  walk.ExpectGoodbye();
}

TEST(ServerDrain, AsksAgainUntilTheSchedulerAnswers) {
  Walk walk;
  walk.Register({.holds_shard = true});
  walk.Begin();
  const Message first = walk.Request();
  for (const absl::Status& busy : {absl::UnavailableError(""), absl::DeadlineExceededError(""),
                                   absl::ResourceExhaustedError("")}) {
    walk.Pass(absl::Milliseconds(499));
    EXPECT_EQ(walk.Asked(), 0u);
    walk.Pass(absl::Milliseconds(1));
    walk.Answer(busy);
    walk.Expect(State::kAsking);
  }
  walk.Pass(absl::Milliseconds(500));
  walk.AnswerTo(first, absl::FailedPreconditionError("as things were then"));
  walk.Expect(State::kAsking);
  walk.Answer(absl::OkStatus());
  walk.Expect(State::kDraining);
  walk.Pass(absl::Seconds(20));
  EXPECT_EQ(walk.Asked(), 0u);
  walk.Expect(State::kDraining);
}

TEST(ServerDrain, LeavesWhenTheSchedulerIsSilent) {
  Walk walk;
  walk.Register({.holds_shard = true});
  walk.Begin();
  walk.Pass(absl::Milliseconds(2999));
  walk.Expect(State::kAsking);
  walk.Pass(absl::Milliseconds(1));
  walk.ExpectGoodbye();
}

// A notice is lost where a loop's queue is full; a loop may be in the middle of a long call.
TEST(ServerDrain, SaysNoGoodbyeBeforeAllDataLoopsHaveStopped) {
  Walk walk;
  walk.Register({.holds_shard = true});
  walk.Begin();
  walk.Answer(absl::FailedPreconditionError("there is no other server"));
  walk.Confirm({2});
  walk.Expect(State::kStopping);
  walk.ConfirmEarlierLease(1);
  walk.AdoptView({.draining = true});
  walk.Expect(State::kStopping);
  walk.Pass(absl::Milliseconds(500));
  const Message again = walk.Request();
  EXPECT_TRUE(again.envelope.has_lease_notice());
  EXPECT_EQ(again.to().loop, 1u);
  walk.Pass(absl::Milliseconds(500));
  walk.ExpectGoodbye();
}

// Where others stay, the job does not close, whatever the view said before.
TEST(ServerDrain, ASnapshotOfAJobThatStaysOpenIsNoReasonToLeave) {
  Walk walk;
  walk.Register({.holds_shard = true});
  walk.Begin();
  walk.Answer(absl::OkStatus());
  walk.AdoptView({.holds_shard = true, .draining = true, .other_stays = true, .closing = "s"});
  walk.Expect(State::kDraining);
}

TEST(ServerDrain, EveryTransitionOfTheTableIsWalkedAndNoOther) {
  Arrows walked;
  for (const Arrows& arrows : {WalkDrainedAndWantedAgain(), WalkDrainedByAnother(),
                               WalkLeavesBeforeItIsAMember(), WalkRefused(), WalkTooLate()}) {
    walked.insert(arrows.begin(), arrows.end());
  }
  Arrows table;
  for (const auto& [from, to] : ServerDrain::Transitions()) table.insert({from, to});
  for (const auto& [from, to] : table) {
    EXPECT_TRUE(walked.contains({from, to}))
        << "not walked: " << static_cast<int>(from) << " to " << static_cast<int>(to);
  }
  for (const auto& [from, to] : walked) {
    EXPECT_TRUE(table.contains({from, to}))
        << "not legal: " << static_cast<int>(from) << " to " << static_cast<int>(to);
  }
}

}  // namespace
}  // namespace covey::server
