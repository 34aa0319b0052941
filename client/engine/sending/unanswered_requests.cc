// SPDX-License-Identifier: Apache-2.0
#include "client/engine/sending/unanswered_requests.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/planted_bug.h"
#include "common/cluster/limits.h"
#include "common/net/wire.h"
#include "common/tensor/outer_product.h"
#include "common/tensor/wire_format.h"

namespace covey::client {
namespace {

using State = ShardRequest::State;

// A shard whose chain is empty usually has a server again within about a second. A view then
// triggers the send; this retry is a safeguard.
constexpr absl::Duration kNoServerRetry = absl::Milliseconds(200);

// Of a function, or of a query and its answer, about.
constexpr size_t kCallBytes = 32;

// Each shard gets the smaller of the factors, with all of `right`, and of its elements.
void ChooseFactors(const Operation& operation, ShardRequest& request) {
  const Factors& factors = *operation.factors;
  const MatrixRange range = RangeOf(factors, request);
  if (!AreFactorsSmaller(operation.format, range, factors.terms)) return;
  request.terms = factors.terms;
  request.wire_bytes = FactorBytes(operation.format, range, factors.terms);
}

uint64_t NextSequence(uint64_t& last) {
  ++last;
  constexpr uint64_t kSixBits = 63;
  return Planted(PlantedBug::kSequenceWraps) ? (last - 1) % kSixBits + 1 : last;
}

}  // namespace

void UnansweredRequests::Start(absl::Time now, ActiveOperation& owner, const ShardRange& shards,
                               const proto::Table& table, const ClusterView& view, Outbox& outbox) {
  COVEY_CHECK(owner.first_request == next_request_id_);
  for (uint32_t i = 0; i < shards.count; ++i) {
    Add(now, owner, shards, table.shards(static_cast<int>(shards.first + i)));
  }
  const auto first = requests_.find(owner.first_request);
  for (auto next = first; next != requests_.end(); ++next) {
    Enqueue(now, next->second, view, outbox);
  }
}

void UnansweredRequests::Add(absl::Time now, ActiveOperation& owner, const ShardRange& shards,
                             const proto::Shard& shard) {
  const Operation& operation = owner.operation;
  const uint64_t id = next_request_id_++;
  ShardRequest& request = requests_.try_emplace(requests_.end(), id)->second;
  request.owner = &owner;
  request.started = now;
  request.request_id = id;
  request.shard = {operation.table, ShardIndex(shard.index())};
  if (operation.keyed) {
    const KeyBatch& batch = *operation.keyed->batch;
    const size_t width = batch.distinct() == 0 ? 0 : shards.elements / batch.distinct();
    const size_t rows = batch.KeysOf(shard.index()).size();
    request.first_element = batch.KeysBefore(shard.index()) * width;
    request.element_count = rows * width;
    request.wire_bytes = EncodedRowBytes(operation.format, width, rows);
  } else if (!operation.scan) {
    request.first_element = shard.first_element() - shards.first_element;
    request.element_count = shard.element_count();
    request.wire_bytes = EncodedBytes(operation.format, request.element_count);
    if (operation.factors) ChooseFactors(operation, request);
  }
  if (operation.calls()) {
    request.wire_bytes = kCallBytes * (operation.functions.size() + operation.queries.size());
  } else if (operation.scan) {
    request.wire_bytes = kScanBytesMax;
  } else if (operation.pulls()) {
    const size_t values =
        EncodedBytes(shards.row_type, request.element_count) * (1 + operation.slots);
    request.wire_bytes = std::max(values, operation.pushes() ? request.wire_bytes : 0);
  }
  if (!operation.pushes()) return;
  request.pushes = true;
  if (operation.group) request.producer = operation.group->group;
  if (operation.initial_state) {
    const size_t slots = operation.initial_state->slots.size() / operation.gradient.size();
    request.wire_bytes += slots * request.element_count * sizeof(float);
  }
  request.sequence =
      operation.group ? operation.group->step.value() : NextSequence(sequences_[request.shard]);
  window_.Begin(request);
  const VersionFloor::Base base = versions_.BaseOf(request.shard);
  request.base_version = base.version;
  request.base_generation = base.generation;
}

ShardRequest* UnansweredRequests::Find(uint64_t request_id) {
  const auto found = requests_.find(request_id);
  return found == requests_.end() ? nullptr : &found->second;
}

ShardRequest& UnansweredRequests::FirstOf(const ActiveOperation& owner) {
  const auto first = requests_.lower_bound(owner.first_request);
  COVEY_CHECK(first != requests_.end() && first->second.owner == &owner);
  return first->second;
}

UnansweredRequests::Requests::node_type UnansweredRequests::Take(const ShardRequest& request) {
  return requests_.extract(request.request_id);
}

void UnansweredRequests::Enqueue(absl::Time now, ShardRequest& request, const ClusterView& view,
                                 Outbox& outbox) {
  const proto::Shard* shard = view.FindShard(request.shard);
  if (shard == nullptr) {
    dropped_(request, outbox);
    return;
  }
  request.head = view.HeadOf(*shard);
  request.generation = shard->generation();
  request.chain_epoch = shard->chain_epoch();
  if (request.head.node == NodeId()) {
    request.last_refusal = absl::UnavailableError("no server holds the shard at present");
    RetryAt(now + kNoServerRetry, request);
    return;
  }
  request.retry_at = absl::InfiniteFuture();
  queue_.Enqueue(request);
}

void UnansweredRequests::FollowView(absl::Time now, const ClusterView& view) {
  for (auto& [id, request] : requests_) FollowHead(now, request, view);
}

void UnansweredRequests::FollowHead(absl::Time now, ShardRequest& request,
                                    const ClusterView& view) {
  const proto::Shard* shard = view.FindShard(request.shard);
  if (shard == nullptr || view.HeadOf(*shard) != request.head ||
      shard->generation() != request.generation) {
    queue_.Withdraw(request, State::kBackingOff);
    request.tries = 0;
  } else if (shard->chain_epoch() != request.chain_epoch && request.in_flight()) {
    request.chain_epoch = shard->chain_epoch();
    request.tries = 0;
    RetryAt(std::min(request.retry_at, now + queue_.ChainChangeDelay()), request);
  }
  if (request.state() != State::kBackingOff) return;
  // A refusal said that some view was behind; the view is newer now.
  request.refusals = 0;
  RetryAt(now, request);
}

void UnansweredRequests::SendQueued(absl::Time now, const Sender& self, const ClusterView& view,
                                    absl::FunctionRef<bool(const ShardRequest&)> held_back,
                                    Outbox& outbox) {
  while (ShardRequest* next = queue_.Next(held_back)) {
    queue_.Send(now, *next);
    next->version_floor = versions_.Of(next->shard, next->generation);
    Transmit(now, self, view, Attempt::kFirst, *next, outbox);
  }
}

void UnansweredRequests::Transmit(absl::Time now, const Sender& self, const ClusterView& view,
                                  Attempt attempt, ShardRequest& request, Outbox& outbox) {
  RetryAt(now + queue_.ReplyPatience(request.head, request.tries), request);
  if (request.tries++ > 0) ++counters_.repeats;
  routes_.Ensure(request.head, view, outbox);
  request.names_keys = IsKeyListKept(request);
  Message message = RequestMessage(now, self, view.epoch(), attempt, request);
  counters_.key_bytes += KeyBytes(message);
  counters_.bytes_sent += WireBytes(message);
  outbox.Send(std::move(message));
}

bool UnansweredRequests::IsKeyListKept(const ShardRequest& request) const {
  return request.owner->operation.keyed &&
         kept_key_lists_.Contains(request.shard, {request.head, request.generation},
                                  covey::NameOf(KeysOnWire(request).list));
}

bool UnansweredRequests::AreKeysUnknown(const ShardRequest& request, const Message& reply) {
  return request.names_keys && reply.from() == request.head &&
         (reply.envelope.has_push_reply() ? reply.envelope.push_reply().keys_unknown()
                                          : reply.envelope.pull_reply().keys_unknown());
}

void UnansweredRequests::RepeatDue(absl::Time now, const Sender& self, const ClusterView& view,
                                   Outbox& outbox) {
  std::vector<uint64_t> due;
  for (const auto& [id, request] : requests_) {
    if (request.retry_at <= now) due.push_back(id);
  }
  for (const uint64_t id : due) {
    ShardRequest* request = Find(id);
    if (request == nullptr) continue;  // Another request of its operation has failed.
    if (request->in_flight()) {
      Transmit(now, self, view, Attempt::kRepeat, *request, outbox);
    } else {
      Enqueue(now, *request, view, outbox);
    }
  }
}

Verdict UnansweredRequests::HandleReply(absl::Time now, ShardRequest& request, const Message& reply,
                                        const ClusterView& view) {
  Verdict verdict = TakeReply(request, reply, view, counters_);
  // The deadline that the server knows may be an earlier one (ActiveOperation::deadline).
  if (verdict.kind == Verdict::Kind::kFailed && absl::IsDeadlineExceeded(verdict.why) &&
      now < request.owner->deadline) {
    verdict.kind = Verdict::Kind::kRefused;
  }
  if (verdict.kind == Verdict::Kind::kRefused || verdict.kind == Verdict::Kind::kValuesUnfit) {
    BackOff(now, request, reply, verdict);
  }
  if (verdict.kind != Verdict::Kind::kAccepted) return verdict;
  if (request.in_flight()) queue_.OnReply(now, request, reply.envelope.credit_bytes());
  CountReply(request, reply);
  if (request.owner->operation.keyed && reply.from() == request.head) {
    kept_key_lists_.Observe(
        request.shard, {request.head, request.generation}, covey::NameOf(KeysOnWire(request).list),
        reply.envelope.has_push_reply() ? reply.envelope.push_reply().key_lists_kept()
                                        : reply.envelope.pull_reply().key_lists_kept());
  }
  const Version version(StateOf(reply).version());
  // No gradient is computed on what a scan reads.
  if (request.owner->operation.pulls() && !request.owner->operation.scan) {
    versions_.ObserveValues(request.shard, request.generation, version);
  } else {
    versions_.Observe(request.shard, request.generation, version);
  }
  return verdict;
}

void UnansweredRequests::BackOff(absl::Time now, ShardRequest& request, const Message& reply,
                                 const Verdict& verdict) {
  if (absl::IsResourceExhausted(verdict.why)) {
    ++counters_.refusals;
    if (request.in_flight()) queue_.OnRefusal(request);
  }
  if (absl::IsDataLoss(StatusOf(reply))) ++counters_.damaged;
  const bool sends_keys = AreKeysUnknown(request, reply);
  if (sends_keys) {
    ++counters_.unknown_lists;
    kept_key_lists_.Forget(request.shard, covey::NameOf(KeysOnWire(request).list));
  }
  // A queued or backing-off request will be sent anyway; the refusal belongs to an earlier attempt.
  if (request.in_flight()) {
    queue_.Withdraw(request, State::kBackingOff);
    request.last_refusal = verdict.why;
    const absl::Duration asked = absl::Milliseconds(reply.envelope.status().retry_after_ms());
    RetryAt(sends_keys ? now : now + queue_.RefusalDelay(request.refusals++, asked), request);
  }
  if (verdict.kind == Verdict::Kind::kValuesUnfit) {
    request.query_only = reply.from() == request.head;
  }
}

void UnansweredRequests::UpdateNextDue() {
  next_due_ = absl::InfiniteFuture();
  for (const auto& [id, request] : requests_) next_due_ = std::min(next_due_, request.retry_at);
}

}  // namespace covey::client
