#include "server/replication/replica_link.h"

#include <algorithm>
#include <utility>

#include "common/cluster/limits.h"

namespace covey::server {
namespace {

constexpr absl::Duration kRetryShortest = absl::Milliseconds(50);
constexpr absl::Duration kRetryLongest = absl::Milliseconds(500);
// Content on the way to one successor.
constexpr uint64_t kPieceBytesInFlight = 2 * kReplicaPieceBytesMax;
// In place of a record: some promise is in none yet.
constexpr uint64_t kNotYet = ~uint64_t{0};
// A joining successor that lags by no more begins to count.
constexpr uint64_t kNearlyCaughtUp = kRecordsInFlightPerShard / 4;

}  // namespace

ReplicaLink::ReplicaLink(absl::Time now, const Address& successor, bool joining,
                         const Records& records, const Counters& counters)
    : successor_(successor),
      counters_(counters),
      joining_(joining),
      state_(joining ? State::kUnknown : State::kStreaming),
      sent_(records.newest),
      held_(records.first - 1),
      durable_(joining ? 0 : records.first - 1),
      newest_(records.newest),
      silent_since_(now) {}

void ReplicaLink::SetChain(absl::Time now, const proto::ChainPosition& chain, bool joining) {
  chain_ = chain;
  const bool was_joining = std::exchange(joining_, joining);
  refused_ = false;
  told_unreachable_ = false;
  timed_ = 0;
  retries_ = 0;
  silent_since_ = now;
  gap_filled_at_ = ~uint64_t{0};
  ready_ = has_answered_ = false;
  if (joining && !was_joining) {
    // It has left the chain and comes back with nothing.
    state_ = State::kUnknown;
    export_.reset();
    required_ = was_ready_ = false;
  }
  // What was sent under the older epoch has perhaps been dropped, and its answers are ignored.
  retry_at_ = OwesAnswer() ? now : absl::InfiniteFuture();
}

bool ReplicaLink::OwesAnswer() const {
  if (refused_) return false;
  return state_ != State::kStreaming || durable_ < newest_;
}

bool ReplicaLink::TakeUnreachable(absl::Time now) {
  if (told_unreachable_ || !OwesAnswer() || now - silent_since_ < kSilentMax) return false;
  told_unreachable_ = true;
  return true;
}

uint64_t ReplicaLink::NeedsFrom() const {
  switch (state_) {
    case State::kUnknown:
      return ~uint64_t{0};
    case State::kFilling:
      return export_->index() + 1;
    case State::kStreaming:
      return (counts() ? durable_ : held_) + 1;
  }
  return 0;
}

void ReplicaLink::GiveUpFilling() {
  if (counts()) return;
  state_ = State::kUnknown;
  export_.reset();
}

absl::Time ReplicaLink::NextWake() const {
  if (!OwesAnswer()) return absl::InfiniteFuture();
  return told_unreachable_ ? retry_at_ : std::min(retry_at_, silent_since_ + kSilentMax);
}

void ReplicaLink::RestartTimer(absl::Time now, bool progress) {
  if (progress) retries_ = 0;
  if (!OwesAnswer()) {
    retry_at_ = absl::InfiniteFuture();
  } else if (progress || retry_at_ <= now || retry_at_ == absl::InfiniteFuture()) {
    // An answer without progress puts off no retry: a successor that asks often would get none.
    const absl::Duration usual = round_trip_.Patience(kRetryShortest, kRetryLongest);
    retry_at_ = now + std::min(kRetryLongest, usual * (1 << std::min(retries_, 10)));
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
  const bool owed = OwesAnswer();
  newest_ = source.content.index();
  if (!owed) silent_since_ = now;
  if (state_ != State::kStreaming || refused_) return;
  // What is not kept any more was durable, so a successor that has joined holds it.
  if (sent_ + 1 < source.log.first()) sent_ = source.log.first() - 1;
  const bool news = sent_ < newest_;
  while (sent_ < newest_) SendRecord(++sent_, source, outbox);
  if (news && timed_ == 0) {
    timed_ = sent_;
    timed_since_ = now;
    timed_was_repeated_ = false;
  }
  if (news && retry_at_ == absl::InfiniteFuture()) RestartTimer(now, /*progress=*/true);
  UpdateReadiness(source);
}

void ReplicaLink::Receive(absl::Time now, const proto::ReplicateReply& reply, const Source& source,
                          Outbox& outbox) {
  newest_ = source.content.index();
  silent_since_ = now;
  if (reply.wants_content()) {
    // One that counts as joined must report itself unfit.
    if (joining_) ReceiveWish(now, reply, source, outbox);
  } else if (reply.held_index() <= newest_) {
    ReceiveHeld(now, reply, source, outbox);
  }
  Send(now, source, outbox);
}

void ReplicaLink::StartFilling(const Source& source) {
  state_ = State::kFilling;
  ready_ = has_answered_ = false;
  required_ = was_ready_;
  required_at_ = kNotYet;
  export_ = std::make_unique<ContentExport>(source.content);
  pieces_sent_ = pieces_held_ = 0;
  gap_filled_at_ = ~uint64_t{0};
  timed_ = 0;
}

void ReplicaLink::ReceiveWish(absl::Time now, const proto::ReplicateReply& reply,
                              const Source& source, Outbox& outbox) {
  uint64_t next_piece = reply.next_piece();
  if (state_ != State::kFilling) {
    StartFilling(source);
    next_piece = 0;
  }
  if (next_piece < export_->pieces()) FillFrom(now, next_piece, reply.missing(), outbox);
}

void ReplicaLink::FillFrom(absl::Time now, uint64_t next_piece, bool missing, Outbox& outbox) {
  const bool progress = next_piece > pieces_held_;
  if (next_piece < pieces_held_ || (missing && gap_filled_at_ != next_piece)) {
    gap_filled_at_ = next_piece;
    pieces_sent_ = next_piece;
  }
  pieces_held_ = next_piece;
  pieces_sent_ = std::max(pieces_sent_, next_piece);
  SendPieces(outbox);
  RestartTimer(now, progress);
}

void ReplicaLink::SendPieces(Outbox& outbox) {
  uint64_t in_flight = 0;
  for (uint64_t piece = pieces_held_; piece < pieces_sent_; ++piece) {
    in_flight += export_->PieceBytes(piece);
  }
  while (pieces_sent_ < export_->pieces() && in_flight < kPieceBytesInFlight) {
    in_flight += export_->PieceBytes(pieces_sent_);
    counters_.content_bytes += export_->PieceBytes(pieces_sent_);
    Message message = export_->Piece(pieces_sent_++);
    *message.envelope.mutable_replica_piece()->mutable_chain() = chain_;
    Post(std::move(message), outbox);
  }
}

void ReplicaLink::ReceiveHeld(absl::Time now, const proto::ReplicateReply& reply,
                              const Source& source, Outbox& outbox) {
  const uint64_t held = reply.held_index();
  if (state_ == State::kFilling && held < export_->index()) {
    // From before it asked; or its older content was not replaced, for the first piece was lost.
    if (reply.missing()) FillFrom(now, 0, /*missing=*/true, outbox);
    return;
  }
  if (joining_ && held < newest_ && held + 1 < source.log.first()) {
    // It lacks what is not kept any more.
    StartFilling(source);
    SendPieces(outbox);
    RestartTimer(now, /*progress=*/true);
    return;
  }
  bool progress = state_ != State::kStreaming;
  if (progress) {
    state_ = State::kStreaming;
    export_.reset();
    sent_ = held_ = held;
  }
  progress = progress || held > held_ || reply.durable_index() > durable_;
  held_ = std::max(held_, held);
  durable_ = std::max(durable_, std::min(reply.durable_index(), held_));
  if (held_ > sent_) sent_ = held_;
  if (reply.missing() && held == held_ && held_ < sent_ && gap_filled_at_ != held_) {
    gap_filled_at_ = held_;
    sent_ = held_;
    timed_was_repeated_ = true;
  }
  has_answered_ = true;
  Time(now);
  RestartTimer(now, progress);
}

void ReplicaLink::Time(absl::Time now) {
  if (timed_ == 0 || (counts() ? durable_ : held_) < timed_) return;
  if (timed_was_repeated_) {
    round_trip_.NoteRepeated(now - timed_since_, kRetryShortest);
  } else {
    round_trip_.NoteFirst(now - timed_since_);
  }
  timed_ = 0;
}

void ReplicaLink::UpdateReadiness(const Source& source) {
  if (!joining_ || state_ != State::kStreaming || !has_answered_ || !source.has_joined) return;
  if (!required_ && held_ + kNearlyCaughtUp >= newest_ && held_ + 1 >= source.log.first()) {
    required_ = true;
    required_at_ = newest_;
  }
  if (!required_ || ready_) return;
  if (!source.keeps_promises) {
    required_at_ = kNotYet;
    return;
  }
  if (required_at_ == kNotYet) required_at_ = newest_;
  ready_ = durable_ >= required_at_ && held_ >= required_at_;
  was_ready_ = was_ready_ || ready_;
}

void ReplicaLink::Ask(Outbox& outbox) const {
  Message message =
      state_ == State::kFilling ? export_->Question(pieces_sent_ - 1) : QuestionAfter(sent_);
  (state_ == State::kFilling ? *message.envelope.mutable_replica_piece()->mutable_chain()
                             : *message.envelope.mutable_replicate_request()->mutable_chain()) =
      chain_;
  Post(std::move(message), outbox);
}

void ReplicaLink::Wake(absl::Time now, Outbox& outbox) {
  if (now < retry_at_ || !OwesAnswer()) return;
  ++retries_;
  // What has been sent again may have been lost again.
  gap_filled_at_ = ~uint64_t{0};
  // One that is unknown yet asks by itself.
  if (state_ != State::kUnknown) Ask(outbox);
  RestartTimer(now, /*progress=*/false);
}

}  // namespace covey::server
