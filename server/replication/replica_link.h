// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/metrics/duration_histogram.h"
#include "common/net/message.h"
#include "common/net/round_trip.h"
#include "common/runtime/actor.h"
#include "proto/view.pb.h"
#include "server/replication/content_sender.h"
#include "server/replication/shard_content.h"
#include "server/replication/shard_record.h"
#include "server/replication/successor_state.h"

namespace covey::server {

// A server's link to its successor in a shard's chain: sends it every record in order, resends lost
// ones, and sends the whole content to a successor that has none. The knowledge about the successor
// is one SuccessorState, whose states are drawn there.
//
// Once the successor gets records, every record that exists has been sent. A lost record is resent
// only when a reply says that it is missing. When a reply takes longer than usual, the successor is
// first queried for what it holds, because it, or a server behind it, may only be slow. Pieces of
// content likewise.
//
// A new successor, and one of a changed chain, is queried first: it may hold everything already.
//
// Nothing is durable without a joined successor. Nothing is durable without a joining one either,
// from the moment when it has nearly caught up. It is ready once it holds everything that was
// durable at that moment: a scheduler that then counts it as joined may rely on it, even if this
// server is gone by then. So a successor that was ready once stays required while it is the
// successor. Under each new chain epoch it has to reply again before it is ready, because it may
// have left the chain in between and lost its content.
//
// Invariants: 1. held <= sent <= newest record. 2. durable <= held. 3. Replies of another chain
// epoch change nothing: the caller drops them.
//
// Actor-confined. Deterministic.
class ReplicaLink {
 public:
  // The contents to be sent; valid only during a call.
  struct Source {
    const ShardContent& content;
    RecordLog& log;
    // This server has joined, so its successor may.
    bool has_joined = true;
    // Some pushes that were acknowledged early are in no record yet.
    bool early_acks_pending = false;
  };
  struct Counters {
    uint64_t& records;                // sent, each time
    uint64_t& content_bytes;          // of pieces
    DurationHistogram& confirmation;  // as ShardCounters::replication
  };

  // The log's first record, and the content's newest.
  struct Records {
    uint64_t first = 1;
    uint64_t newest = 0;
  };

  ReplicaLink(absl::Time now, const proto::Replica& successor, const Records& records,
              const Counters& counters);

  const Address& successor() const { return successor_; }
  const SuccessorState& state() const { return state_; }
  // The chain has changed and the successor has not.
  void SetChain(absl::Time now, const proto::ChainPosition& chain, bool joining);

  // Sends what may be sent. To be called after each new record.
  void Send(absl::Time now, const Source& source, Outbox& outbox);
  // Precondition: the reply comes from the successor, under this chain epoch.
  void OnReply(absl::Time now, const proto::ReplicateReply& reply, const Source& source,
               Outbox& outbox);
  void Wake(absl::Time now, Outbox& outbox);
  absl::Time NextWake() const;

  // The successor follows a newer chain, so this server must not count on its acknowledgements.
  void SetRefused() { state_.Apply(SuccessorState::Event::kRefused); }
  // The successor, and all joined replicas behind it, hold the records up to here.
  uint64_t durable() const { return durable_; }
  // Records below this one are no longer needed for the successor.
  uint64_t NeedsFrom() const;
  // The successor owes a reply and has been silent for kSilentMax. True once per chain epoch.
  bool TakeUnreachable(absl::Time now);
  // Since its newest reply, or since a reply is due.
  absl::Time silent_since() const { return silent_since_; }
  // Drops the state of a successor that is not required, because filling it would fill the log and
  // so delay pushes.
  void GiveUpFilling();
  // A silent successor is reported after this duration.
  static constexpr absl::Duration kSilentMax = absl::Seconds(3);

 private:
  // The record whose round trip is measured, from its first sending until it is durable.
  struct TimedRecord {
    uint64_t index = 0;
    absl::Time since;
    bool was_resent = false;  // a query does not count as a resend
  };

  void OnContentRequest(absl::Time now, const proto::ReplicateReply& reply, const Source& source,
                        Outbox& outbox);
  void OnHeld(absl::Time now, const proto::ReplicateReply& reply, const Source& source,
              Outbox& outbox);
  void StartFilling(const Source& source);
  // The successor needs the pieces from this one on; `missing` as in ReplicateReply.
  void FillFrom(absl::Time now, uint64_t next_piece, bool missing, const Source& source,
                Outbox& outbox);
  void SendPieces(Outbox& outbox);
  // Queries what the successor holds.
  void Query(Outbox& outbox) const;
  void SendRecord(uint64_t index, const Source& source, Outbox& outbox);
  void Post(Message message, Outbox& outbox) const;
  void UpdateReadiness(const Source& source);
  // The acknowledged records: durable ones for a required successor, held ones for another.
  uint64_t acknowledged() const { return state_.is_required() ? durable_ : held_; }
  void RecordRoundTrip(absl::Time now);
  // After progress, and after a time-out: when the next query is due.
  enum class Cause { kProgress, kNoProgress };
  void RestartTimer(absl::Time now, Cause cause);
  bool OwesReply() const;

  // Constant after construction.
  const Address successor_;
  const Counters counters_;

  // Owned by the actor's thread.
  proto::ChainPosition chain_;
  SuccessorState state_;
  uint64_t sent_;
  uint64_t held_;
  uint64_t durable_;
  uint64_t newest_;  // record, as of the last call
  std::optional<TimedRecord> timed_;
  RoundTrip round_trip_;
  // The held record, or next piece, after which a gap has been filled already.
  std::optional<uint64_t> gap_filled_at_;
  std::unique_ptr<ContentSender> content_;  // while filling
  // A required successor is ready once it holds this record. Empty: some push that was acknowledged
  // early is in no record yet.
  std::optional<uint64_t> ready_at_;
  absl::Time silent_since_;
  int retries_ = 0;  // without progress
  absl::Time retry_at_ = absl::InfiniteFuture();
};

}  // namespace covey::server
