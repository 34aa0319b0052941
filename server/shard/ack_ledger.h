// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/net/message.h"
#include "server/replication/push_history.h"

namespace covey::server {

// Pushes that a head has received and that are in no record yet, with the replies that their
// senders got. Together with PushHistory it distinguishes duplicates from new pushes.
//
//             ┌─ Add(kReceived) ──▶ received ─────────────┐
//   a push ───┤                                           ├─ TakeRecorded ──▶ in a record; durable
//             └─ Add(kEarly) ─────▶ acknowledged early ───┘                   once the chain has it
//
// Received: the reply said "not durable", because a successor is required. The sender keeps the
// push until a second reply says that it is durable, and resends it to the next head.
//
// Acknowledged early: the reply said "durable", because this server was the whole chain. The sender
// has forgotten the push, so no successor may be called ready before the push is in a record. A
// buffered update could let it wait forever. So once a successor waits, flush_at() says when the
// update is made without the pushes that it still lacks.
//
// Received pushes are in no record, so they are lost with the head.
//
// Actor-confined. Deterministic. Holds as many pushes as the update gate.
class AckLedger {
 public:
  enum class Ack { kReceived, kEarly };

  // Whether the ledger holds the push. ABORTED: a newer incarnation of its producer has pushed.
  absl::StatusOr<bool> Find(const PushKey& key) const;
  // Nothing when the ledger does not hold the push.
  std::optional<Ack> AckOf(const PushKey& key) const;

  void Add(const PushKey& key, Ack ack);
  // Sets the reply that is sent once the push is durable; a newer reply replaces it. No effect when
  // the ledger does not hold the push.
  void OweReply(const PushKey& key, Message reply);
  // The push is part of a record now. Returns the reply that is owed, if there is one.
  std::optional<Message> TakeRecorded(const PushKey& key);

  // Whether some push was acknowledged early and is in no record yet.
  bool early_acks_pending() const { return early_ > 0; }
  // To be called when early_acks_pending() or its argument may have changed: whether a successor
  // waits for early acknowledgements that are held for a buffered update.
  void UpdateFlush(absl::Time now, bool successor_waits);
  absl::Time flush_at() const { return flush_at_; }

  // Number of producers whose pushes are held.
  size_t producers() const { return entries_.size(); }
  // Of these, the ones for which `is_counted` returns true. Cost: O(producers).
  size_t CountProducers(absl::FunctionRef<bool(const Producer&)> is_counted) const;
  bool Knows(const Producer& producer) const { return entries_.contains(producer); }

 private:
  struct Push {
    Ack ack = Ack::kReceived;
    std::optional<Message> owed;
  };
  struct Entry {
    uint64_t incarnation = 0;  // highest
    // By incarnation and sequence; of a group by sequence alone, because a new generation continues
    // its steps.
    absl::btree_map<std::pair<uint64_t, uint64_t>, Push> pushes;
  };
  static std::pair<uint64_t, uint64_t> NumberOf(const PushKey& key);
  const Push* FindPush(const PushKey& key) const;

  absl::btree_map<Producer, Entry> entries_;
  size_t early_ = 0;  // pushes with Ack::kEarly
  absl::Time flush_at_ = absl::InfiniteFuture();
};

}  // namespace covey::server
