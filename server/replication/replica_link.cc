// SPDX-License-Identifier: Apache-2.0
#include "server/replication/replica_link.h"

#include <algorithm>
#include <utility>

#include "common/base/planted_bug.h"
#include "common/cluster/limits.h"
#include "common/cluster/own_pause.h"
#include "common/cluster/retry_policy.h"

namespace covey::server {
namespace {

using Event = SuccessorState::Event;
using Transfer = SuccessorState::Transfer;

constexpr absl::Duration kRetryShortest = absl::Milliseconds(50);
constexpr absl::Duration kRetryLongest = absl::Milliseconds(500);
constexpr RetryPolicy kRetry{.longest = kRetryLongest};
// A joining successor that lags by at most this many records becomes required.
constexpr uint64_t kNearlyCaughtUp = kRecordsInFlightPerShard / 4;

}  // namespace

ReplicaLink::ReplicaLink(absl::Time now, const proto::Replica& successor, const Records& records,
                         const Counters& counters)
    : successor_{NodeId(successor.node()), successor.loop()},
      counters_(counters),
      state_(successor.joining() ? SuccessorState::Joining() : SuccessorState::Joined()),
      sent_(records.newest),
      held_(records.first - 1),
      durable_(successor.joining() ? 0 : records.first - 1),
      newest_(records.newest),
      silent_since_(now) {}

void ReplicaLink::SetChain(absl::Time now, const proto::ChainPosition& chain, bool joining) {
  chain_ = chain;
  if (joining == state_.is_joining()) {
    state_.Apply(Event::kChainChanged);
  } else if (joining) {
    state_.Apply(Event::kRejoining);
    content_.reset();
  } else {
    state_.Apply(Event::kJoined);
  }
  timed_.reset();
  retries_ = 0;
  silent_since_ = now;
  gap_filled_at_.reset();
  // Messages under the older epoch may have been dropped, and replies to them are ignored.
  retry_at_ = OwesReply() ? now : absl::InfiniteFuture();
}

bool ReplicaLink::OwesReply() const {
  if (state_.is_refused()) return false;
  return !state_.gets_records() || durable_ < newest_;
}

bool ReplicaLink::TakeUnreachable(absl::Time now) {
  if (state_.contact() != SuccessorState::Contact::kInTouch || !OwesReply() ||
      now - silent_since_ < kSilentMax) {
    return false;
  }
  state_.Apply(Event::kSilent);
  return true;
}

uint64_t ReplicaLink::NeedsFrom() const {
  switch (state_.transfer()) {
    case Transfer::kUnknown:
      return ~uint64_t{0};
    case Transfer::kFilling:
      return content_->index() + 1;
    case Transfer::kUnconfirmed:
    case Transfer::kStreaming:
      return acknowledged() + 1;
  }
  return 0;
}

void ReplicaLink::GiveUpFilling() {
  if (state_.is_required()) return;
  state_.Apply(Event::kGivenUp);
  content_.reset();
}

absl::Time ReplicaLink::NextWake() const {
  if (!OwesReply()) return absl::InfiniteFuture();
  return state_.contact() == SuccessorState::Contact::kReportedSilent
             ? retry_at_
             : std::min(retry_at_, silent_since_ + kSilentMax);
}

void ReplicaLink::RestartTimer(absl::Time now, Cause cause) {
  const bool progress = cause == Cause::kProgress;
  if (progress) retries_ = 0;
  if (!OwesReply()) {
    retry_at_ = absl::InfiniteFuture();
  } else if (progress || retry_at_ <= now || retry_at_ == absl::InfiniteFuture()) {
    // A reply without progress does not postpone a retry, otherwise a successor that asks often
    // would never get one.
    const absl::Duration usual = round_trip_.Patience(kRetryShortest, kRetryLongest);
    retry_at_ = now + kRetry.DelayAfter(retries_, usual);
  }
}

void ReplicaLink::Post(Message message, Outbox& outbox) const {
  message.set_to(successor_);
  outbox.Send(std::move(message));
}

void ReplicaLink::SendRecord(uint64_t index, const Source& source, Outbox& outbox) {
  Message message = ToMessage(source.log.At(index));
  *message.envelope.mutable_replicate_request()->mutable_chain() = chain_;
  ++counters_.records;
  Post(std::move(message), outbox);
}

void ReplicaLink::Send(absl::Time now, const Source& source, Outbox& outbox) {
  const bool owed = OwesReply();
  newest_ = source.content.index();
  if (!owed) silent_since_ = now;
  if (!state_.gets_records() || state_.is_refused()) return;
  // A record that is no longer kept was durable, so a joined successor holds it.
  if (sent_ + 1 < source.log.first()) sent_ = source.log.first() - 1;
  const bool news = sent_ < newest_;
  while (sent_ < newest_) SendRecord(++sent_, source, outbox);
  if (news && !timed_) timed_ = {.index = sent_, .since = now};
  if (news && retry_at_ == absl::InfiniteFuture()) RestartTimer(now, Cause::kProgress);
  UpdateReadiness(source);
}

void ReplicaLink::OnReply(absl::Time now, const proto::ReplicateReply& reply, const Source& source,
                          Outbox& outbox) {
  newest_ = source.content.index();
  silent_since_ = now;
  if (reply.wants_content()) {
    // A successor that counts as joined must report itself unfit.
    if (state_.is_joining()) OnContentRequest(now, reply, source, outbox);
  } else if (reply.held_index() <= newest_) {
    OnHeld(now, reply, source, outbox);
  }
  Send(now, source, outbox);
}

void ReplicaLink::StartFilling(const Source& source) {
  state_.Apply(Event::kFilled);
  content_ = std::make_unique<ContentSender>(source.content.Cut());
  ready_at_.reset();
  gap_filled_at_.reset();
  timed_.reset();
}

void ReplicaLink::OnContentRequest(absl::Time now, const proto::ReplicateReply& reply,
                                   const Source& source, Outbox& outbox) {
  uint64_t next_piece = reply.next_piece();
  if (state_.transfer() != Transfer::kFilling) {
    StartFilling(source);
    next_piece = 0;
  }
  if (content_->HasPiece(next_piece)) FillFrom(now, next_piece, reply.missing(), source, outbox);
}

void ReplicaLink::FillFrom(absl::Time now, uint64_t next_piece, bool missing, const Source& source,
                           Outbox& outbox) {
  // The successor has lost what it held.
  if (!content_->CanResend(next_piece)) {
    StartFilling(source);
    next_piece = 0;
  }
  const Cause cause = next_piece > content_->held() ? Cause::kProgress : Cause::kNoProgress;
  if (next_piece < content_->held() || (missing && gap_filled_at_ != next_piece)) {
    gap_filled_at_ = next_piece;
    content_->Rewind(next_piece);
  }
  content_->SetHeld(next_piece);
  SendPieces(outbox);
  RestartTimer(now, cause);
}

void ReplicaLink::SendPieces(Outbox& outbox) {
  counters_.content_bytes += content_->SendMore([&](Message message) {
    *message.envelope.mutable_replica_piece()->mutable_chain() = chain_;
    Post(std::move(message), outbox);
  });
}

void ReplicaLink::OnHeld(absl::Time now, const proto::ReplicateReply& reply, const Source& source,
                         Outbox& outbox) {
  const uint64_t held = reply.held_index();
  if (state_.transfer() == Transfer::kFilling && held < content_->index()) {
    // Either a reply from before the successor asked, or it still has older content because the
    // first piece was lost.
    if (reply.missing() && !Planted(PlantedBug::kPiecesNotResent)) {
      FillFrom(now, 0, /*missing=*/true, source, outbox);
    }
    return;
  }
  if (state_.is_joining() && held < newest_ && held + 1 < source.log.first()) {
    // The successor lacks records that are no longer kept.
    StartFilling(source);
    SendPieces(outbox);
    RestartTimer(now, Cause::kProgress);
    return;
  }
  const bool starts = !state_.gets_records();
  if (starts) {
    content_.reset();
    sent_ = held_ = held;
  } else if (state_.transfer() == Transfer::kUnconfirmed && held < held_ &&
             !Planted(PlantedBug::kKeepFormerPlace)) {
    // It has left the chain and come back, in views that this server did not see, and what it held
    // before was not durable.
    held_ = std::max(held, durable_);
  }
  const bool progress = starts || held > held_ || reply.durable_index() > durable_;
  held_ = std::max(held_, held);
  durable_ = std::max(durable_, std::min(reply.durable_index(), held_));
  if (held_ > sent_) sent_ = held_;
  if (reply.missing() && held == held_ && held_ < sent_ && gap_filled_at_ != held_) {
    gap_filled_at_ = held_;
    sent_ = held_;
    if (timed_) timed_->was_resent = true;
  }
  if (state_.transfer() != Transfer::kStreaming) state_.Apply(Event::kReplied);
  RecordRoundTrip(now);
  RestartTimer(now, progress ? Cause::kProgress : Cause::kNoProgress);
}

void ReplicaLink::RecordRoundTrip(absl::Time now) {
  if (!timed_ || acknowledged() < timed_->index) return;
  counters_.confirmation.Record(now - timed_->since);
  if (timed_->was_resent) {
    round_trip_.NoteRepeated(now - timed_->since, kRetryShortest);
  } else {
    round_trip_.NoteFirst(now - timed_->since);
  }
  timed_.reset();
}

void ReplicaLink::UpdateReadiness(const Source& source) {
  if (!state_.is_joining() || state_.is_ready()) return;
  if (state_.transfer() != Transfer::kStreaming || !source.has_joined) return;
  if (!state_.is_required()) {
    const bool nearly_caught_up =
        held_ + kNearlyCaughtUp >= newest_ && held_ + 1 >= source.log.first();
    if (!nearly_caught_up) return;
    state_.Apply(Event::kNearlyCaughtUp);
    ready_at_ = newest_;
  }
  if (source.early_acks_pending && !Planted(PlantedBug::kReadyWithEarlyAcks)) {
    ready_at_.reset();
    return;
  }
  if (!ready_at_) ready_at_ = newest_;
  if (durable_ >= *ready_at_ && held_ >= *ready_at_) state_.Apply(Event::kCaughtUp);
}

void ReplicaLink::Query(Outbox& outbox) const {
  const bool is_filling = state_.transfer() == Transfer::kFilling;
  Message message = is_filling ? content_->Query() : QueryAfter(sent_);
  (is_filling ? *message.envelope.mutable_replica_piece()->mutable_chain()
              : *message.envelope.mutable_replicate_request()->mutable_chain()) = chain_;
  Post(std::move(message), outbox);
}

void ReplicaLink::Wake(absl::Time now, Outbox& outbox) {
  // While this server stood still itself, the successor's replies may have waited unread.
  silent_since_ = std::min(now, silent_since_ + OwnPause(NextWake(), now));
  if (now < retry_at_ || !OwesReply()) return;
  ++retries_;
  // The resent record may have been lost again.
  gap_filled_at_.reset();
  // A successor whose content is not known yet asks by itself.
  if (state_.transfer() != Transfer::kUnknown) Query(outbox);
  RestartTimer(now, Cause::kNoProgress);
}

}  // namespace covey::server
