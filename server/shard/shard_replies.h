// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/buffer.h"
#include "common/contract/read_gate.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "common/tensor/wire_format.h"
#include "server/shard/durability_queue.h"
#include "server/shard/gradient_aggregator.h"
#include "server/shard/parked_replies.h"
#include "server/shard/served_shard.h"

namespace covey::server {

// The replies of a shard. Every reply shows the shard as it is when the reader's demand is met, and
// leaves once the whole chain holds that state: nothing that a reader has seen is ever lost.
//
// Fresh is judged by a view that is at least as new as the reader's, which may have more groups.
//
//                 fresh enough                    durable
//   request ─────────────────────▶ complete ──────────────────▶ sent
//      │                           ▲      │
//      └──▶ parked ────────────────┘      └──▶ undurable ──▶ sent, or refused after its deadline
//             │    fresh enough
//             └──▶ refused: its deadline has passed, or the shard is suspended
//
// A push that waits for a later update gets two replies: received, and durable (AckLedger).
//
// Actor-confined. Deterministic.
class ShardReplies {
 public:
  // `shard` outlives it.
  explicit ShardReplies(ServedShard& shard) : shard_(shard) {}

  // Completes the reply, or parks it until the shard is fresh enough.
  void SendWhenFresh(absl::Time now, PendingReply pending, Outbox& outbox);
  // Completes the reply; it leaves as soon as what it shows is durable.
  void SendWhenDurable(absl::Time now, PendingReply& pending, Outbox& outbox);
  // Queues the second replies to pushes that have become part of the newest record.
  void QueueDurableAcks(absl::Time now, const AggregatedUpdate& update);
  void Refuse(Message& reply, const absl::Status& why, Outbox& outbox) const;

  // Completes the parked replies for which the shard is fresh enough.
  void ReleaseParked(absl::Time now, Outbox& outbox);
  // What parked replies wait for under another contract.
  void FollowContract(const Contract& contract);
  // Refuses the parked replies that are late.
  void RefuseLateParked(absl::Time now, Outbox& outbox);
  void RefuseParked(const absl::Status& why, Outbox& outbox);

  // Sends the complete replies that have become durable.
  void SendDurable(absl::Time now, Outbox& outbox);
  // Refuses the complete replies that are late.
  void RefuseLateUndurable(absl::Time now, Outbox& outbox);
  void RefuseUndurable(const absl::Status& why, Outbox& outbox);
  // At the end of each of the shard's turns: its next update writes values in place only where
  // nobody reads them.
  void ForgetEncoded() { encoded_ = {}; }

  size_t parked() const { return parked_.size(); }
  absl::Time next_parked_deadline() const { return parked_.next_deadline(); }
  absl::Time next_undurable_deadline() const { return undurable_.next_deadline(); }
  // Of keys and of queries.
  size_t parked_bytes() const { return parked_.bytes(); }
  // Of old values.
  size_t undurable_bytes() const { return undurable_.bytes(); }

 private:
  // RESOURCE_EXHAUSTED: too much waits already; the reply is untouched then.
  absl::Status Park(PendingReply& pending);
  void SendNow(absl::Time now, UndurableReply complete, Outbox& outbox);
  // Remembers the values in the reply as those that its reader computes on.
  void RecordSent(const PendingReply& pending);
  bool IsFreshEnough(absl::Time now, const PendingReply& pending) const;
  // Whether the view has all groups that the reader may know, or its bound does not depend on them.
  bool KnowsGroups(const PendingReply& pending) const;
  // Why it is not fresh enough, for users.
  std::string Missing(absl::Time now, const PendingReply& pending) const;
  Freshness FreshnessAt(absl::Time now) const;
  // The format to send the values in: the one asked for where they are the reply's only frame, else
  // float32.
  WireFormat ValueFormatOf(const PendingReply& pending) const;
  // Adds the float32 values; without a checksum where EncodeValues replaces them.
  void AddValues(PendingReply& pending, WireFormat format);
  // Precondition: the reply's only frame has its values, as float32.
  void EncodeValues(WireFormat format, Message& reply);
  // The piece that a pull asks for. OUT_OF_RANGE: the reader has to begin again; and as
  // SparseShard::CheckScan.
  absl::Status AddScannedRows(const proto::RowScan& scan, Message& reply);
  // Precondition: the reply is to a pull, and has the values.
  void AddSlots(Message& reply);
  // Precondition: the reply is to a push.
  void CompletePushReply(PendingReply& pending);
  void Describe(proto::ShardState& state) const;
  uint64_t durable() const;

  // Constant after construction.
  ServedShard& shard_;

  // Owned by the actor's thread.
  ParkedReplies parked_;
  DurabilityQueue undurable_;
  // Values that were encoded last, for all readers that are answered in one turn of the shard.
  struct EncodedValues {
    Buffer values;
    WireFormat format = WireFormat::kFloat32;
    Buffer frame;
    uint32_t checksum = 0;
  };
  EncodedValues encoded_;
};

}  // namespace covey::server
