// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace covey {

// Every limit of the protocol, with unit and reason. Bytes from outside never make a process
// allocate beyond these.

// Envelope of a data-plane message. The largest legitimate one, a reply with 1,000 group clocks,
// needs 12 KiB.
inline constexpr size_t kDataEnvelopeBytesMax = 64 << 10;
// Envelope of a control message; a view of 100,000 shards needs about 4 MiB.
inline constexpr size_t kControlEnvelopeBytesMax = 16 << 20;
// One tensor frame. Shards are cut below it, so one shard is always one frame.
inline constexpr size_t kFrameBytesMax = 16 << 20;
// Frames beside one envelope.
inline constexpr size_t kFramesMax = 4;

// Shards are cut between these unless the user says otherwise: 1 MiB keeps receive, apply and send
// inside the cache and below malloc's page-returning sizes; less than 256 KiB is dominated by cost
// per message.
inline constexpr size_t kShardBytesDefaultMin = 256 << 10;
inline constexpr size_t kShardBytesDefaultMax = 1 << 20;
inline constexpr size_t kShardBytesMax = kFrameBytesMax;
static_assert(kShardBytesDefaultMax <= kShardBytesMax);

// Elements of one table: 1 TiB of float32.
inline constexpr uint64_t kTableElementsMax = uint64_t{1} << 38;
inline constexpr size_t kTableNameBytesMax = 256;
inline constexpr size_t kTablesMax = 65536;
inline constexpr size_t kTableDimensionsMax = 8;
// Shards of all tables; bounds the view.
inline constexpr size_t kShardsMax = 131072;

inline constexpr size_t kNodesMax = 65536;
inline constexpr size_t kEndpointsPerNodeMax = 256;
inline constexpr size_t kEndpointBytesMax = 256;
inline constexpr size_t kLabelBytesMax = 256;
inline constexpr size_t kNameBytesMax = 256;
inline constexpr size_t kStatusMessageBytesMax = 1024;

// Slots into which the keys of a sparse table fall (common/table/key_slots.h): the most shards that
// one can have.
inline constexpr uint64_t kKeySlots = uint64_t{1} << 16;
// Elements of a row of a sparse table: with the slots of its optimizer a row has at most 48 KiB.
inline constexpr size_t kRowWidthMax = 4096;
// Rows of one shard; row numbers have 31 bits.
inline constexpr uint64_t kRowsPerShardMax = (uint64_t{1} << 31) - 1;
// SparseRows.admit_after.
inline constexpr uint32_t kAdmitAfterMax = 65535;
// Evictions in one record; each concerns some 100,000 rows, so a record may make room for an update
// with as many new keys as a request holds.
inline constexpr size_t kEvictionsPerRecordMax = 64;
// Keys of one push or pull of a shard: encoded in any way, they fit into a frame.
inline constexpr size_t kKeysPerRequestMax = 1 << 20;
static_assert(kKeysPerRequestMax * 10 <= kFrameBytesMax);
// Bytes that a data loop takes to keep lists of keys for one client: those of some 30 batches of
// 10,000 keys. A longer list is not kept.
inline constexpr size_t kKeyListBytesPerClientMax = 8 << 20;
// Of the bytes that may wait in a data loop, the part that lists of keys may take: one in so many.
inline constexpr size_t kKeyListShareOfQueue = 4;
// Lists of one shard that a client remembers to be kept there.
inline constexpr size_t kKeyListsPerShardMax = 1024;

// One piece of a scan of a shard's rows: bytes of keys and values, where one row does not take
// more, and index entries that are looked at. Either takes about a millisecond.
inline constexpr size_t kScanBytesMax = 1 << 20;
inline constexpr size_t kScanEntriesMax = 1 << 17;
// Keys of rows that went, which a shard remembers for readers of changes. They fit into a frame.
inline constexpr size_t kRemovedKeysPerShardMax = 1 << 20;
static_assert(kRemovedKeysPerShardMax * sizeof(uint64_t) <= kFrameBytesMax);
// Functions and queries of one request for such a table: their records, and the answers, stay
// within 10 KiB.
inline constexpr size_t kVectorFunctionsMax = 256;
inline constexpr size_t kVectorQueriesMax = 256;
// Elements that all queries for the largest elements of one request may ask for.
inline constexpr size_t kTopElementsMax = 1024;

// Terms of a gradient in factors. For a shard of E elements, factors are smaller than these only
// below sqrt(E) / 2 terms, so more are never of use.
inline constexpr uint32_t kOuterProductTermsMax = 1024;
static_assert(uint64_t{kOuterProductTermsMax} * kOuterProductTermsMax * 4 * sizeof(float) ==
              kShardBytesMax);

// Pushes remembered per shard and producer, for telling duplicates; an older sequence is refused,
// never applied.
inline constexpr size_t kDedupWindow = 4096;
// Sequence numbers and steps of pushes. At a million pushes per second they take 292,000 years to
// get there. Below it, sums with a window or a staleness bound do not overflow.
inline constexpr uint64_t kPushSequenceMax = uint64_t{1} << 63;
// How far beyond a producer's highest sequence number, or step, its next push may be. At 10,000
// steps per second a group takes three years to get there, so that no honest push is refused. One
// wrong number moves a clock by no more than this.
inline constexpr uint64_t kPushSequenceJumpMax = uint64_t{1} << 40;
// Producers remembered per shard. Those that are gone are forgotten; a push of one more is refused.
inline constexpr size_t kProducersPerShardMax = 4096;
// NormGate: how far from the usual norm its bound may be, and after how many pushes in a row a
// producer may be quarantined at the latest.
inline constexpr double kNormGateFactorMin = 2;
inline constexpr double kNormGateFactorMax = 1e9;
inline constexpr uint32_t kQuarantineAfterMax = 1'000'000;
// Producers that a server tells the scheduler of, because of pushes beyond gates.
inline constexpr size_t kGatedProducersToldMax = 32;
// Producers of a job that are quarantined at a time.
inline constexpr size_t kQuarantinedMax = 1024;
// Servers that hold one shard.
inline constexpr size_t kReplicasMax = 5;
// Records of one shard that its successor has been sent and has not acknowledged. Bounds what a
// server keeps for retries, and how far an acknowledgement may lag behind what has been applied.
inline constexpr size_t kRecordsInFlightPerShard = 64;
inline constexpr size_t kRecordBytesInFlightPerShard = 32 << 20;
static_assert(kRecordBytesInFlightPerShard >= kFrameBytesMax);
// Largest piece in which a shard's content travels to a new replica.
inline constexpr size_t kReplicaPieceBytesMax = 4 << 20;
// Bytes of pushes that one client keeps because they were received and are not durable yet. Beyond
// it, an operation ends only when it is durable.
inline constexpr size_t kUndurableBytesPerClientMax = 256 << 20;
// Bytes of requests that wait in all data loops of a server, unless its configuration says
// otherwise; beyond it requests are refused.
inline constexpr size_t kQueuedBytesDefault = 256 << 20;

// Items that one work request may ask for, or report.
inline constexpr uint32_t kWorkItemsPerRequestMax = 1024;
// Data sets of a job, and items per pass of each.
inline constexpr size_t kWorkLedgersMax = 64;
inline constexpr uint64_t kWorkItemsMax = uint64_t{1} << 24;

// Replies that a contract holds back, per shard.
inline constexpr size_t kParkedPerShardMax = 4096;

// Pushes of one group that a bsp shard holds until the other groups have caught up; beyond it the
// group is told to slow down.
inline constexpr size_t kHeldStepsPerGroupMax = 8;
// Arrivals that a buffered contract may ask for per update; bounds the memory for them.
inline constexpr uint64_t kBufferedArrivalsMax = 4096;
// Inner steps between two outer updates; far above any published setting (500).
inline constexpr uint64_t kLocalStepsMax = 100'000;
// Samples that a shard counts during its life; far from overflow, and beyond any training run.
inline constexpr uint64_t kShardSamplesMax = uint64_t{1} << 62;
// Updates and training examples with which a table may begin (InitialState): as many can follow.
inline constexpr uint64_t kInitialUpdatesMax = uint64_t{1} << 61;
inline constexpr uint64_t kInitialSamplesMax = uint64_t{1} << 61;
static_assert(kInitialSamplesMax <= kShardSamplesMax / 2);

// Bytes of requests that one client has in flight; further ones wait in the client. Bounds what a
// server must buffer per client.
inline constexpr size_t kClientBytesInFlightDefault = 32 << 20;
static_assert(kClientBytesInFlightDefault >= kFrameBytesMax);

// Messages from other threads of the process that wait for a loop.
inline constexpr size_t kLoopQueueMessagesMax = 65536;
// Messages per peer inside the transport before it drops (ZeroMQ counts messages; bytes are bounded
// by credits).
inline constexpr int kTransportQueueMessagesMax = 4096;

// Peers to which one worker measures its links for the scheduler; and the probes of others that it
// answers in a second.
inline constexpr size_t kProbedPeersMax = 16;
inline constexpr size_t kProbesAnsweredPerSecondMax = 1024;

// Largest message of a collective; a hop with more bytes is cut into several.
inline constexpr size_t kSliceBytesMax = 1 << 20;
static_assert(kSliceBytesMax <= kFrameBytesMax);
inline constexpr size_t kGroupMembersMax = 4096;
// The frame of a GroupHello. It has room for the hello of one member whose model has as many
// buckets as there may be tables. Parsing a frame temporarily takes up to 25 times as much memory.
inline constexpr size_t kGroupHelloBytesMax = 8 << 20;
inline constexpr size_t kBucketProgressBytesMax = 48;
static_assert(kBucketProgressBytesMax * (kTablesMax + 16) <= kGroupHelloBytesMax);
static_assert(kGroupHelloBytesMax <= kFrameBytesMax);
// The counts of one table's round, for members that restore it (group.proto, TableRound).
inline constexpr size_t kTableRoundBytesMax = 48;
static_assert(kTableRoundBytesMax * (kTablesMax + 16) <= kFrameBytesMax);
// Steps and pulls of a group are numbered below this, so sums of a few of them do not overflow.
inline constexpr uint64_t kGroupStepsMax = uint64_t{1} << 60;
// How often the members of one generation may repeat the rendezvous before the group gives up.
inline constexpr uint32_t kGroupAttemptsMax = 0xffff;
// Slices from members that are ahead, kept until this member has begun the same collective. Beyond
// it the group fails, because slices are sent only once.
inline constexpr size_t kGroupEarlyBytesMax = 256 << 20;
inline constexpr size_t kGroupEarlySlicesMax = 65536;
// Slices that one member has handed to its transport and that are not sent yet.
inline constexpr size_t kGroupBytesInFlightMax = 32 << 20;
static_assert(kGroupBytesInFlightMax >= kSliceBytesMax);
// The part of these for one other member: small, so that an urgent slice soon finds room, but more
// than the transport sends between two checks.
inline constexpr size_t kGroupBytesInFlightPerPeer = 2 << 20;
static_assert(kGroupBytesInFlightPerPeer >= kSliceBytesMax);
inline constexpr size_t kGroupSlicesInFlightMax = 1024;
static_assert(kGroupSlicesInFlightMax < kTransportQueueMessagesMax);

// Unanswered heartbeats that a member remembers, so that a late reply still counts: those of 8 s at
// the default interval, since each is followed by one more. A longer round trip counts as an
// outage.
inline constexpr size_t kUnansweredBeatsMax = 32;

// Bytes that one StoreRead returns. The largest file that is read whole is a manifest: 131072
// shards with 13 pieces each, and the view, need about 70 MiB.
inline constexpr uint64_t kStoreReadMax = 128 << 20;
// Files that one process writes at a time: up to three per data loop of a server.
inline constexpr size_t kStoreOpenFilesMax = 256;
// Logs of updates that follow the content of a shard in a snapshot, with which reading the shard
// takes at most twice as long, and opens few files.
inline constexpr size_t kLogsPerShardMax = 32;
// Files and folders in one folder of a store.
inline constexpr size_t kStoreEntriesMax = 65536;
// Requests that wait in a store, and their bytes, unless its options say otherwise.
inline constexpr size_t kStoreQueueRequestsMax = 4096;
inline constexpr size_t kStoreQueueBytesDefault = 64 << 20;
static_assert(kStoreQueueBytesDefault >= kFrameBytesMax);

inline constexpr size_t kBarrierNamesMax = 4096;
inline constexpr absl::Duration kBarrierMax = absl::Hours(1);
// How long a worker may announce that it is away: its group waits this long for a program that
// hangs. A program that needs longer announces it again.
inline constexpr absl::Duration kAwayMax = absl::Hours(1);
// Members of a group that one heartbeat's reply says are away: with reasons of the greatest length,
// 4 KiB.
inline constexpr size_t kAwayToldMax = 16;
inline constexpr size_t kEventsKeptMax = 4096;

// How long a trace may take (proto TraceOrder).
inline constexpr absl::Duration kTraceMax = absl::Minutes(10);
// Spans that a node keeps of a trace: 20 MiB in memory, 10 MiB in reports.
inline constexpr uint32_t kTraceSpansMax = 1 << 18;
// Bytes of one TracePiece, of the pieces in one TraceReply, and of all that a scheduler keeps.
inline constexpr size_t kTracePieceBytesMax = 512 << 10;
inline constexpr size_t kTraceReplyBytesMax = 4 << 20;
inline constexpr size_t kTraceBytesMax = 256 << 20;
// Names of spans in one thread; further ones are "other". Names are at most kNameBytesMax bytes.
inline constexpr size_t kTraceNamesMax = 512;

}  // namespace covey
