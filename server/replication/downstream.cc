// SPDX-License-Identifier: Apache-2.0
#include "server/replication/downstream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace covey::server {
namespace {

// A joining successor that is silent for longer does not make pushes wait.
constexpr absl::Duration kFillingMayHoldUp = absl::Milliseconds(200);
// A digest is one pass over the content; once per this many records or bytes it costs little.
constexpr uint64_t kRecordsPerDigest = 64;
constexpr uint64_t kBytesPerDigest = 64 << 20;

}  // namespace

void Downstream::Follow(absl::Time now, const proto::Replica* successor) {
  if (successor == nullptr) {
    link_.reset();
  } else {
    LinkTo(now, *successor);
  }
}

void Downstream::LinkTo(absl::Time now, const proto::Replica& successor) {
  const Address address{NodeId(successor.node()), successor.loop()};
  if (link_ == nullptr || link_->successor() != address) {
    link_ = std::make_unique<ReplicaLink>(
        now, successor, ReplicaLink::Records{.first = log_.first(), .newest = log_.next() - 1},
        counters_);
  }
  link_->SetChain(now, place_.chain(), successor.joining());
}

void Downstream::Forget() {
  log_.Reset(1);
  durable_ = 0;
}

void Downstream::StartFrom(absl::Time now, const Held& held, bool is_joining) {
  log_.Reset(held.content.index() + 1);
  if (link_ != nullptr) {
    proto::Replica successor;
    successor.set_node(link_->successor().node.value());
    successor.set_loop(link_->successor().loop);
    successor.set_joining(is_joining);
    link_.reset();
    LinkTo(now, successor);
  }
  Settle(now, held.content);
}

void Downstream::Send(absl::Time now, const Held& held, Outbox& outbox) {
  if (link_ != nullptr) link_->Send(now, SourceOf(held), outbox);
  Settle(now, held.content);
}

void Downstream::PassOn(absl::Time now, ShardRecord record, const Held& held, Outbox& outbox) {
  if (link_ == nullptr) {
    log_.Reset(record.index + 1);
  } else {
    log_.Add(std::move(record));
  }
  Send(now, held, outbox);
}

bool Downstream::DigestIsDue(const ShardRecord& record) {
  if (link_ == nullptr) return false;
  ++records_without_digest_;
  bytes_without_digest_ += record.frame_bytes();
  if (records_without_digest_ < kRecordsPerDigest && bytes_without_digest_ < kBytesPerDigest) {
    return false;
  }
  records_without_digest_ = bytes_without_digest_ = 0;
  return true;
}

bool Downstream::SetEarlyAcksPending(bool pending) {
  return std::exchange(early_acks_pending_, pending) != pending && link_ != nullptr;
}

bool Downstream::IsFromSuccessor(const Message& message) const {
  return link_ != nullptr && message.from() == link_->successor() &&
         message.envelope.replicate_reply().chain().generation() == place_.chain().generation();
}

void Downstream::OnRefusal(const Message& message) {
  if (!IsFromSuccessor(message)) return;
  const proto::ReplicateReply& reply = message.envelope.replicate_reply();
  if (reply.chain().chain_epoch() > place_.chain_epoch()) link_->SetRefused();
}

void Downstream::OnReply(absl::Time now, const Message& message, const Held& held, Outbox& outbox) {
  if (!IsFromSuccessor(message)) return;
  const proto::ReplicateReply& reply = message.envelope.replicate_reply();
  if (reply.chain().chain_epoch() != place_.chain_epoch()) return;
  link_->OnReply(now, reply, SourceOf(held), outbox);
  Settle(now, held.content);
}

void Downstream::Wake(absl::Time now, const Held& held, Outbox& outbox) {
  if (link_ == nullptr) return;
  link_->Wake(now, outbox);
  if (link_->TakeUnreachable(now)) {
    reports_.push_back(place_.MakeReport(
        proto::ReplicaReport::UNREACHABLE, link_->successor().node,
        absl::StrCat("no answer for ", absl::FormatDuration(ReplicaLink::kSilentMax))));
  }
  Settle(now, held.content);
}

absl::Time Downstream::NextWake() const {
  return link_ == nullptr ? absl::InfiniteFuture() : link_->NextWake();
}

void Downstream::Settle(absl::Time now, const ShardContent& content) {
  if (link_ == nullptr) {
    durable_ = content.index();
    log_.Reset(durable_ + 1);
    return;
  }
  const SuccessorState& successor = link_->state();
  if (!successor.is_refused()) {
    const uint64_t held =
        successor.is_required() ? std::min(content.index(), link_->durable()) : content.index();
    durable_ = std::max(durable_, held);
  }
  if (log_.IsFull() && !successor.is_required() &&
      now - link_->silent_since() > kFillingMayHoldUp) {
    link_->GiveUpFilling();
  }
  log_.TrimBelow(std::min(durable_ + 1, link_->NeedsFrom()));
  if (successor.is_ready() && ready_reported_at_ != Epoch(place_.chain_epoch())) {
    ready_reported_at_ = Epoch(place_.chain_epoch());
    reports_.push_back(place_.MakeReport(proto::ReplicaReport::READY, link_->successor().node, ""));
  }
}

}  // namespace covey::server
