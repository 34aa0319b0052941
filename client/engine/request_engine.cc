// SPDX-License-Identifier: Apache-2.0
#include "client/engine/request_engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/engine/requests/request_errors.h"
#include "common/base/buffer.h"
#include "common/base/planted_bug.h"
#include "common/cluster/limits.h"
#include "common/net/release_poll.h"
#include "common/net/sender.h"
#include "common/net/wire.h"

namespace covey::client {

RequestEngine::RequestEngine(const Options& options, uint64_t& next_request_id)
    : options_(options),
      next_request_id_(next_request_id),
      self_({.node = NodeId(), .incarnation = options.incarnation}),
      view_(ClusterView::Empty()),
      queue_({.budget = options.bytes_in_flight_max == 0 ? kClientBytesInFlightDefault
                                                         : options.bytes_in_flight_max,
              .retry_after = options.retry_after,
              .retry_after_longest = options.retry_after_longest,
              .seed = options.seed}),
      unanswered_(next_request_id, queue_, window_, routes_, counters_,
                  [this](ShardRequest& request, Outbox& outbox) {
                    Finish(request, TableDroppedError(*view_, request.shard), outbox);
                  }),
      undurable_(
          options.seed + 1, queue_, routes_, counters_, push_times_,
          [this](const ShardRequest& push, const absl::Status& lost) { PushEnded(push, lost); }) {}

void RequestEngine::SetView(absl::Time now, NodeId self, std::shared_ptr<const ClusterView> view,
                            Outbox& outbox) {
  self_.node = self;
  view_ = std::move(view);
  unanswered_.FollowView(now, *view_);
  WakeBy(unanswered_.next_due());
  undurable_.FollowView(now, *view_);
  WakeBy(undurable_.next_due());
  routes_.FollowView(*view_, outbox);
  queue_.ForgetIdle([this](NodeId node) { return !view_->IsAlive(node); });
  CheckFlushes(now, outbox);
}

absl::Status RequestEngine::Start(absl::Time now, Operation operation, Outbox& outbox) {
  const proto::Table* table = view_->FindTable(operation.table);
  if (table == nullptr) {
    return absl::NotFoundError(absl::StrCat("table ", operation.table.value(),
                                            " is not in the view of epoch ", view_->epoch().value(),
                                            "; create it first, or look up its name again"));
  }
  const absl::StatusOr<ShardRange> shards = ShardsOf(operation, *table);
  if (!shards.ok()) return shards.status();
  ActiveOperation& active = operations_.Add(std::move(operation), *shards, next_request_id_);
  SetDeadline(active);
  unanswered_.Start(now, active, *shards, *table, *view_, outbox);
  Pump(now, outbox);
  return absl::OkStatus();
}

bool RequestEngine::IsHeldBack(const ShardRequest& request) const {
  const auto waits_for_pushes_of = [&](GroupId producer) {
    return undurable_.HoldsBack(request.request_id, request.shard, producer);
  };
  if (request.pushes) return !window_.HasRoomFor(request) || waits_for_pushes_of(request.producer);
  // A reader sees its own pushes.
  const Operation& operation = request.owner->operation;
  return waits_for_pushes_of(operation.group ? operation.group->group : GroupId()) ||
         waits_for_pushes_of(operation.read.group);
}

void RequestEngine::Pump(absl::Time now, Outbox& outbox) {
  undurable_.SendDue(now, *view_, outbox);
  WakeBy(undurable_.next_due());
  const auto held_back = [this](const ShardRequest& request) { return IsHeldBack(request); };
  unanswered_.SendQueued(now, self_, *view_, held_back, outbox);
  WakeBy(unanswered_.next_due());
}

bool RequestEngine::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  const auto body = message.envelope.body_case();
  if (body != proto::Envelope::kPushReply && body != proto::Envelope::kPullReply) return false;
  // Requests go to servers of the view, and nobody else answers for them.
  const proto::Node* const sender = SenderOf(message, *view_);
  if (sender == nullptr || sender->role() != proto::SERVER) {
    ++counters_.strangers;
    return true;
  }
  counters_.bytes_received += WireBytes(message);
  const bool is_push = body == proto::Envelope::kPushReply;
  const uint64_t id = message.envelope.header().request_id();
  if (ShardRequest* request = unanswered_.Find(id); request != nullptr) {
    if (request->pushes == is_push) HandleReply(now, *request, message, outbox);
  } else if (ShardRequest* push = undurable_.Find(id); push != nullptr && is_push) {
    undurable_.HandleReply(now, *push, message, *view_);
    WakeBy(undurable_.next_due());
  } else {
    return true;  // A reply to a request that has ended.
  }
  Pump(now, outbox);
  Retire(now, outbox);
  CheckFlushes(now, outbox);
  return true;
}

void RequestEngine::HandleReply(absl::Time now, ShardRequest& request, const Message& reply,
                                Outbox& outbox) {
  Verdict verdict = unanswered_.HandleReply(now, request, reply, *view_);
  switch (verdict.kind) {
    case Verdict::Kind::kRefused:
    case Verdict::Kind::kValuesUnfit:
      WakeBy(unanswered_.next_due());
      return;
    case Verdict::Kind::kFailed:
      Finish(request, std::move(verdict.why), outbox);
      return;
    case Verdict::Kind::kAccepted:
      break;
  }
  if (request.pushes && !reply.envelope.push_reply().durable()) {
    KeepUndurable(now, request, reply.from());
  } else {
    if (request.pushes) push_times_.Record(now - request.started);
    Finish(request, absl::OkStatus(), outbox);
  }
}

void RequestEngine::KeepUndurable(absl::Time now, ShardRequest& push, const Address& receiver) {
  ActiveOperation& owner = *push.owner;
  --owner.unanswered;
  UnansweredRequests::Requests::node_type node = unanswered_.Take(push);
  if (Planted(PlantedBug::kForgetUndurablePushes)) {
    owner.result.durable = false;
    window_.End(push);
    queue_.Withdraw(push, ShardRequest::State::kOver);
    MarkIfOver(owner);
    return;
  }
  Buffer gradient = GradientFrame(push);
  push.kept = std::make_unique<ShardRequest::Kept>(ShardRequest::Kept{
      .body = PushBody(self_, push), .keys = {}, .gradient = std::move(gradient)});
  if (owner.operation.keyed) {
    push.kept->keys = KeysOnWire(push);
    *push.kept->body.mutable_keys() = push.kept->keys.list;
  }
  if (undurable_.HasRoomFor(push.kept->bytes())) {
    owner.result.durable = false;
    // The encoded bytes already belong to the client, and shared memory is kept by its handle.
    if (push.encoded.empty() && !owner.shares_gradient()) {
      push.kept->gradient = Buffer::CopyOf(push.kept->gradient.bytes());
    }
    push.owner = nullptr;
  } else {
    ++owner.undurable;
  }
  undurable_.Keep(now, std::move(node), receiver, *view_);
  WakeBy(undurable_.next_due());
  MarkIfOver(owner);
}

void RequestEngine::PushEnded(const ShardRequest& push, const absl::Status& lost) {
  window_.End(push);
  if (!lost.ok()) {
    flushes_.NoteLost(lost);
    if (options_.push_lost) options_.push_lost(lost);
  }
  if (push.owner == nullptr) return;
  ActiveOperation& owner = *push.owner;
  --owner.undurable;
  if (!lost.ok() && owner.result.status.ok()) owner.result.status = lost;
  MarkIfOver(owner);
}

void RequestEngine::Finish(ShardRequest& request, absl::Status status, Outbox& outbox) {
  ActiveOperation& owner = *request.owner;
  queue_.Withdraw(request, ShardRequest::State::kOver);
  if (request.pushes) window_.End(request);
  unanswered_.Take(request);
  --owner.unanswered;
  // One failed shard fails the operation: the others need not go on.
  if (!status.ok() && owner.result.status.ok()) {
    owner.result.status = std::move(status);
    FinishUnanswered(owner, absl::CancelledError(), outbox);
    undurable_.GiveUp(owner);
    ReleaseFrames(owner, outbox);
  }
  MarkIfOver(owner);
}

void RequestEngine::FinishUnanswered(ActiveOperation& active, const absl::Status& status,
                                     Outbox& outbox) {
  while (active.unanswered > 0) Finish(unanswered_.FirstOf(active), status, outbox);
}

void RequestEngine::Fail(ActiveOperation& active, const absl::Status& status, Outbox& outbox) {
  FinishUnanswered(active, status, outbox);
  if (active.over()) return;
  active.result.status = status;
  undurable_.GiveUp(active);
}

void RequestEngine::ReleaseFrames(const ActiveOperation& active, Outbox& outbox) {
  if (active.FramesReleased()) return;
  for (const Address& peer : active.sent_to) routes_.Close(peer, outbox);
}

void RequestEngine::MarkIfOver(ActiveOperation& active) {
  if (!operations_.MarkIfOver(active)) return;
  next_wake_ = absl::InfinitePast();
  OperationResult& result = active.result;
  if (!active.operation.queries.empty() && result.status.ok()) {
    result.answers = active.JoinedAnswers();
  }
  if (!active.operation.keyed || !result.status.ok() || result.rows_refused == 0) return;
  const proto::Table* table = view_->FindTable(active.operation.table);
  if (table == nullptr || table->spec().sparse().when_full() != proto::SparseRows::REFUSE) return;
  result.status = RowsRefusedError(table->spec().name(), result.rows_refused);
}

void RequestEngine::Retire(absl::Time now, Outbox& outbox) {
  operations_.Retire(now, outbox);
  if (operations_.has_retiring()) WakeBy(now + kReleasePoll);
}

void RequestEngine::FailExpired(absl::Time now, Outbox& outbox) {
  for (auto& [number, active] : operations_.all()) {
    if (active->over() || now < active->deadline) continue;
    while (active->unanswered > 0) {
      ShardRequest& request = unanswered_.FirstOf(*active);
      Finish(request, NoReplyError(*view_, request), outbox);
    }
    if (active->over()) continue;
    active->result.status = absl::DeadlineExceededError(absl::StrCat(
        "push of table ", active->operation.table.value(),
        ": received, but not durable before the deadline; this client already keeps ",
        undurable_.bytes() >> 20,
        " MiB of pushes that are not durable. See `covey status`, or push less at a time"));
    undurable_.GiveUp(*active);
  }
}

void RequestEngine::Wake(absl::Time now, Outbox& outbox) {
  // Operations end before requests are retried; both in the order they began, never in hash order.
  FailExpired(now, outbox);
  unanswered_.RepeatDue(now, self_, *view_, outbox);
  unanswered_.UpdateNextDue();
  next_wake_ = absl::InfiniteFuture();
  Pump(now, outbox);
  for (const auto& [number, active] : operations_.all()) {
    if (!active->over()) WakeBy(active->deadline);
  }
  WakeBy(flushes_.next_deadline());
  Retire(now, outbox);
  CheckFlushes(now, outbox);
}

void RequestEngine::SetDeadline(ActiveOperation& active) {
  const Operation& operation = active.operation;
  active.deadline =
      operation.group ? std::max(operation.deadline, group_deadline_floor_) : operation.deadline;
  WakeBy(active.deadline);
}

void RequestEngine::SetGroupDeadlineFloor(absl::Time floor) {
  if (floor == group_deadline_floor_) return;
  group_deadline_floor_ = floor;
  for (const auto& [number, active] : operations_.all()) SetDeadline(*active);
}

void RequestEngine::FailAll(absl::Time now, const absl::Status& status, Outbox& outbox) {
  for (const auto& [number, active] : operations_.all()) Fail(*active, status, outbox);
  undurable_.FailAll(*view_, status);
  Retire(now, outbox);
  flushes_.FailAll(now, status, outbox);
}

void RequestEngine::FailGroup(absl::Time now, GroupId group, const absl::Status& status,
                              Outbox& outbox) {
  for (const auto& [number, active] : operations_.all()) {
    const std::optional<GroupIdentity>& identity = active->operation.group;
    if (identity && identity->group == group) Fail(*active, status, outbox);
  }
  Retire(now, outbox);
}

Step RequestEngine::FirstUnconfirmed() const {
  Step first = undurable_.FirstUnconfirmed();
  for (const auto& [number, active] : operations_.all()) {
    const std::optional<GroupIdentity>& group = active->operation.group;
    if (!group || !active->operation.pushes() || active->unanswered == 0) continue;
    if (first == Step() || group->step < first) first = group->step;
  }
  return first;
}

void RequestEngine::Flush(absl::Time now, FlushScope scope, absl::Time deadline,
                          FlushTracker::Done done, Outbox& outbox) {
  flushes_.Add({.before_operation = scope == FlushScope::kAll ? operations_.next_number() : 0,
                .before_request = next_request_id_,
                .deadline = deadline,
                .done = std::move(done)});
  WakeBy(deadline);
  undurable_.Flush(now, next_request_id_);
  Pump(now, outbox);
  CheckFlushes(now, outbox);
}

void RequestEngine::CheckFlushes(absl::Time now, Outbox& outbox) {
  const auto left = [this](const FlushTracker::Flush& flush) -> absl::Status {
    for (const auto& [number, active] : operations_.all()) {
      if (number >= flush.before_operation) break;
      if (!active->operation.pushes() || active->unanswered == 0) continue;
      return UnansweredPushError(*view_, unanswered_.FirstOf(*active));
    }
    return undurable_.LeftBefore(flush.before_request, *view_);
  };
  flushes_.Check(now, left, outbox);
}

}  // namespace covey::client
