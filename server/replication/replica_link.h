#pragma once

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "common/net/round_trip.h"
#include "common/runtime/actor.h"
#include "server/replication/content_pieces.h"
#include "server/replication/shard_content.h"
#include "server/replication/shard_record.h"

namespace covey::server {

// A server's link to its successor in a shard's chain: sends every record, in order and again until
// it is held, and all of the content to a successor that has none.
//
//             its first answer                    it holds all pieces
//   unknown ───────────────────▶ filling ─────────────────────────────▶ streaming
//      │  it holds content                                                  ▲
//      └────────────────────────────────────────────────────────────────────┘
//
// One that has joined streams from the beginning. Streaming: all records that there are have been
// sent; what is lost is sent again when an answer says that it is missing, and only then. When no
// answer comes for longer than answers take, the successor is asked what it holds, which costs no
// bytes: it may be slow, or those behind it. Pieces of content likewise.
//
// A new successor, and one of a changed chain, is asked first: it may hold everything already.
//
// A joining successor counts, that is, nothing is durable without it, from the moment when it has
// nearly caught up. It is ready once it holds everything that was durable at that moment: then
// whoever calls it joined may rely on it, even if this server is gone by then. So one that was ready
// once counts for as long as it is the successor; and under each new chain epoch it has to answer
// anew before it is ready, because it may have left the chain in between and lost its content.
//
// Invariants: 1. held <= sent <= newest record. 2. durable <= held. 3. Answers of another chain
// epoch change nothing: their sender is ignored by the caller.
//
// Actor-confined. Deterministic.
class ReplicaLink {
 public:
  // What the link sends of; outlives a call only.
  struct Source {
    const ShardContent& content;
    RecordLog& log;
    // This server is filled and counts itself, so its successor may.
    bool has_joined = true;
    // All pushes that were promised to be durable before the successor counted are in records.
    bool keeps_promises = true;
  };
  struct Counters {
    uint64_t& records;        // sent, each time
    uint64_t& content_bytes;  // of pieces
  };

  // The log's first record, and the content's newest.
  struct Records {
    uint64_t first = 1;
    uint64_t newest = 0;
  };

  ReplicaLink(absl::Time now, const Address& successor, bool joining, const Records& records,
              const Counters& counters);

  const Address& successor() const { return successor_; }
  // The chain has changed and the successor has not.
  void SetChain(absl::Time now, const proto::ChainPosition& chain, bool joining);

  // Sends what may be sent. To be called after each new record.
  void Send(absl::Time now, const Source& source, Outbox& outbox);
  // Precondition: it is the successor's, of this chain epoch.
  void Receive(absl::Time now, const proto::ReplicateReply& reply, const Source& source,
               Outbox& outbox);
  void Wake(absl::Time now, Outbox& outbox);
  absl::Time NextWake() const;

  // The successor has a newer view: this server must not count on what it knows.
  void SetRefused() { refused_ = true; }
  bool refused() const { return refused_; }

  // Whether nothing is durable without the successor.
  bool counts() const { return !joining_ || required_; }
  // It, and whoever has joined behind it, hold the records up to here.
  uint64_t durable() const { return durable_; }
  // Records below are not needed any more to be sent.
  uint64_t NeedsFrom() const;
  // Joining, and holds all that it must.
  bool is_ready() const { return joining_ && ready_; }
  // It owes an answer, and has not given any for kSilentMax. True once per chain epoch.
  bool TakeUnreachable(absl::Time now);
  absl::Time silent_since() const { return silent_since_; }
  // The log is full because of a joining successor, which must not hold up others: begins anew.
  void GiveUpFilling();
  // So long may it be silent before it is given up.
  static constexpr absl::Duration kSilentMax = absl::Seconds(3);

 private:
  enum class State { kUnknown, kFilling, kStreaming };

  void ReceiveWish(absl::Time now, const proto::ReplicateReply& reply, const Source& source,
                   Outbox& outbox);
  void ReceiveHeld(absl::Time now, const proto::ReplicateReply& reply, const Source& source,
                   Outbox& outbox);
  void StartFilling(const Source& source);
  // It wants the pieces from this one on; `missing` as in ReplicateReply.
  void FillFrom(absl::Time now, uint64_t next_piece, bool missing, Outbox& outbox);
  // Further pieces, until enough bytes are on the way.
  void SendPieces(Outbox& outbox);
  // What the successor holds.
  void Ask(Outbox& outbox) const;
  void SendRecord(uint64_t index, const Source& source, Outbox& outbox);
  void Post(Message message, Outbox& outbox) const;
  void UpdateReadiness(const Source& source);
  void Time(absl::Time now);
  // Something has been sent, or answered: how long to wait for more.
  void RestartTimer(absl::Time now, bool progress);
  bool OwesAnswer() const;

  // Constant after construction.
  const Address successor_;
  const Counters counters_;

  // Owned by the actor's thread.
  proto::ChainPosition chain_;
  bool joining_;
  bool refused_ = false;
  State state_;
  uint64_t sent_;
  uint64_t held_;
  uint64_t durable_;
  uint64_t newest_;  // record, as of the last call
  // One record at a time is timed, since it was sent first, until it is durable; 0 = none.
  uint64_t timed_ = 0;
  absl::Time timed_since_;
  bool timed_was_repeated_ = false;  // its bytes were; a question takes the time of nothing
  RoundTrip round_trip_;
  // held_, or the next piece, for which a gap has been filled already.
  uint64_t gap_filled_at_ = ~uint64_t{0};
  std::unique_ptr<ContentExport> export_;
  uint64_t pieces_sent_ = 0;
  uint64_t pieces_held_ = 0;
  // Joining: it counts since this record was the newest; it is ready when it holds that.
  bool required_ = false;
  uint64_t required_at_ = 0;
  bool ready_ = false;
  bool was_ready_ = false;
  bool has_answered_ = false;  // that it holds content, at this chain epoch
  absl::Time silent_since_;
  bool told_unreachable_ = false;
  int retries_ = 0;  // without progress
  absl::Time retry_at_ = absl::InfiniteFuture();
};

}  // namespace covey::server
