// SPDX-License-Identifier: Apache-2.0
#include "server/server_drain.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/net/own_process.h"

namespace covey::server {
namespace {

constexpr absl::Duration kAgainAfter = absl::Milliseconds(500);
// A scheduler that is away moves no shards; this is about as long as one takes to start again.
constexpr absl::Duration kUnheardMax = absl::Seconds(3);

using State = ServerDrain::State;

constexpr Transition<State> kTransitions[] = {
    {State::kServing, State::kAsking},   {State::kServing, State::kDrained},
    {State::kServing, State::kLeft},     {State::kAsking, State::kDraining},
    {State::kAsking, State::kDrained},   {State::kAsking, State::kStopping},
    {State::kDraining, State::kDrained}, {State::kDraining, State::kStopping},
    {State::kDrained, State::kServing},  {State::kDrained, State::kAsking},
    {State::kStopping, State::kLeft},
};

bool HoldsShards(const proto::ClusterView& view, NodeId node) {
  for (const proto::Table& table : view.tables()) {
    for (const proto::Shard& shard : table.shards()) {
      for (const proto::Replica& replica : shard.chain()) {
        if (NodeId(replica.node()) == node) return true;
      }
    }
  }
  return false;
}

bool AnotherServerStays(const proto::ClusterView& view, NodeId node) {
  return std::any_of(view.nodes().begin(), view.nodes().end(), [node](const proto::Node& other) {
    return other.role() == proto::SERVER && other.state() == proto::Node::ALIVE &&
           !other.draining() && NodeId(other.id()) != node;
  });
}

}  // namespace

std::span<const Transition<State>> ServerDrain::Transitions() { return kTransitions; }

void ServerDrain::Enter(State next) {
  COVEY_CHECK(IsLegalTransition(kTransitions, state_, next));
  state_ = next;
}

void ServerDrain::Begin(absl::Time now, std::string reason, absl::Time deadline, Outbox& outbox) {
  if (state_ != State::kServing) return;
  reason_ = std::move(reason);
  if (member_.state() != Member::State::kMember) {
    Leave(now, State::kLeft, reason_, outbox);
    return;
  }
  Enter(State::kAsking);
  deadline_ = deadline;
  unheard_until_ = now + kUnheardMax;
  FollowView(now, outbox);
  if (is_leaving()) Ask(now, outbox);
}

void ServerDrain::Ask(absl::Time now, Outbox& outbox) {
  again_ = now + kAgainAfter;
  request_id_ = next_request_id_++;
  Message message;
  message.set_to({kSchedulerNode, 0});
  message.envelope.mutable_header()->set_request_id(request_id_);
  proto::DrainRequest& request = *message.envelope.mutable_drain_request();
  request.set_node(member_.view()->NameOf(member_.node()));
  request.set_must_leave(true);
  outbox.Send(std::move(message));
}

bool ServerDrain::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  if (message.envelope.has_lease_notice()) {
    if (IsFromOwnProcess(message)) OnLoopStopped(now, message, outbox);
    return true;
  }
  if (!message.envelope.has_drain_reply()) return false;
  if (!is_leaving() || message.envelope.header().request_id() != request_id_) return true;
  const absl::Status status = StatusOf(message);
  // Not reached, or too busy: asked again.
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
      absl::IsResourceExhausted(status)) {
    return true;
  }
  if (!status.ok()) {
    GiveUp(now, std::string(status.message()), outbox);
    return true;
  }
  if (state_ == State::kAsking) Enter(State::kDraining);
  again_ = unheard_until_ = absl::InfiniteFuture();
  return true;
}

void ServerDrain::FollowView(absl::Time now, Outbox& outbox) {
  if (member_.state() != Member::State::kMember) return;
  const proto::ClusterView& view = member_.view()->proto();
  const proto::Node* self = member_.view()->FindNode(member_.node());
  if (self == nullptr) return;
  if (state_ == State::kDrained && self->state() == proto::Node::ALIVE &&
      (!self->draining() || HoldsShards(view, member_.node()))) {
    LogInfo("server_stays", {{"epoch", view.epoch()}});
    member_.Stay();
    Enter(reason_.empty() ? State::kServing : State::kAsking);
    again_ = now;
  }
  if (has_said_goodbye() || state_ == State::kStopping || !self->draining()) return;
  if (!HoldsShards(view, member_.node())) {
    LogInfo("server_drained", {{"epoch", view.epoch()}});
    Leave(now, State::kDrained, reason_.empty() ? "drained" : absl::StrCat(reason_, ", drained"),
          outbox);
  } else if (is_leaving() && !AnotherServerStays(view, member_.node())) {
    FollowClosing(now, view, outbox);
  }
}

void ServerDrain::FollowClosing(absl::Time now, const proto::ClusterView& view, Outbox& outbox) {
  if (!view.closing().snapshot().empty()) {
    LogInfo("job_closed", {{"snapshot", view.closing().snapshot()}});
    Stop(now, outbox);
  } else if (!view.has_closing() && state_ == State::kDraining &&
             again_ == absl::InfiniteFuture()) {
    // Others stayed when the scheduler consented. It closes the job, or refuses.
    unheard_until_ = now + kUnheardMax;
    Ask(now, outbox);
  }
}

void ServerDrain::GiveUp(absl::Time now, const std::string& why, Outbox& outbox) {
  LogWarning("server_not_drained", {{"reason", why}});
  Stop(now, outbox);
}

void ServerDrain::Stop(absl::Time now, Outbox& outbox) {
  Enter(State::kStopping);
  lease_end_ = now;
  for (uint32_t loop = 1; loop <= data_loops_; ++loop) not_stopped_.insert(loop);
  EndLease(now, outbox);
}

void ServerDrain::EndLease(absl::Time now, Outbox& outbox) {
  again_ = now + kAgainAfter;
  for (const uint32_t loop : not_stopped_) {
    Message message;
    message.set_to({member_.node(), loop});
    message.envelope.mutable_lease_notice()->set_until_ns(absl::ToUnixNanos(lease_end_));
    outbox.Send(std::move(message));
  }
}

void ServerDrain::OnLoopStopped(absl::Time now, const Message& confirmation, Outbox& outbox) {
  // An earlier lease may have expired before a later one began.
  const int64_t until_ns = confirmation.envelope.lease_notice().until_ns();
  if (state_ != State::kStopping || until_ns != absl::ToUnixNanos(lease_end_)) return;
  not_stopped_.erase(confirmation.envelope.from_loop());
  if (not_stopped_.empty()) Leave(now, State::kLeft, reason_, outbox);
}

void ServerDrain::Leave(absl::Time now, State last, const std::string& reason, Outbox& outbox) {
  Enter(last);
  member_.Leave(now, reason, outbox);
}

void ServerDrain::Wake(absl::Time now, Outbox& outbox) {
  if (state_ == State::kStopping && now >= again_) EndLease(now, outbox);
  if (!is_leaving()) return;
  if (now >= deadline_) {
    GiveUp(now, "its shards have not been moved in time", outbox);
  } else if (now >= unheard_until_) {
    GiveUp(now, "the scheduler does not answer", outbox);
  } else if (now >= again_) {
    Ask(now, outbox);
  }
}

absl::Time ServerDrain::NextWake() const {
  if (state_ == State::kStopping) return again_;
  if (!is_leaving()) return absl::InfiniteFuture();
  return std::min({deadline_, unheard_until_, again_});
}

}  // namespace covey::server
