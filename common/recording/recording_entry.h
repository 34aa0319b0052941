// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tensor/wire_format.h"
#include "common/vectors/vector_function.h"

namespace covey {

// The entries of a recording, and their bytes. Pure. An entry is a kind, then its fields:
//
//   kind  entry          fields
//   1     ShardBegin     stream, chain epoch, index, version, length of the table, the table
//   2     AppliedRecord  stream, flags (1 byte), number of pushes, the pushes; then, as the flags
//                        say: 2 the rate factor, 4 the momentum (8 bytes each, IEEE binary64),
//                        8 the cut, 16 the payload: its format (1 byte), length, checksum
//                        (4 bytes), 32 the asynchrony: staleness (8 bytes, IEEE binary64),
//                        pushes, updates above the target. 64: the payload is not a gradient, but
//                        the initial values. 128: behind them are the optimizer's slots, one
//                        after the other; the updates and samples that have made them
//   3     ContentDigest  stream, digest (8 bytes)
//   4     RecordingEnd   none
//   5     AppliedRecord  of an update by functions, which has no payload: as 2, then the number of
//                        functions and the functions
//
//   a push: flags (1 byte), producer, incarnation, sequence; then, unless flag 4 is set, group and
//   step; then samples and base version; then, with flag 8, the norm (4 bytes, IEEE binary32)
//
//   a function: kind (1 byte, as in VectorFunction of proto), target, source, scalar (8 bytes, IEEE
//   binary64)
//
// Kind and flags are one byte. The flag 1 of a record says that it is an update; flags of a push: 1
// its producer is a group, 2 discarded, 4 its group is the producer and its step the sequence, 8 it
// has a norm, 16 it has one and is beyond the table's gate. All other numbers are varints as in
// Protocol Buffers: 7 bits per byte, the lowest first, in as few bytes as possible. A value has one
// encoding only, and any other is refused.

// A head begins to apply records to a shard. The entries that follow name it by `stream`.
struct ShardBegin {
  // From 0, in the order of the loop's files.
  uint64_t stream = 0;
  // Epoch of the chain in which this server became the head.
  uint64_t chain_epoch = 0;
  // Of the content before the next record: its newest record, and its version.
  uint64_t index = 0;
  uint64_t version = 0;
  // A serialized proto::Table with this shard alone.
  std::string table;
  friend bool operator==(const ShardBegin&, const ShardBegin&) = default;
};

// A push in a record. Fields as in proto: PushId, PushRequest and ReplicatedPush.
struct AppliedPush {
  enum class Producer : uint8_t { kClient, kGroup };
  Producer producer_kind = Producer::kClient;
  uint64_t producer = 0;
  uint64_t incarnation = 0;
  // 0: no push; the producer is forgotten.
  uint64_t sequence = 0;
  uint64_t group = 0;
  uint64_t step = 0;
  uint64_t samples = 0;
  uint64_t base_version = 0;
  bool discarded = false;
  float norm = 0;  // 0 = it has none
  bool is_beyond_gate = false;
  friend bool operator==(const AppliedPush&, const AppliedPush&) = default;
};

// The gradient of a record, or its initial values, which lie behind the entries of its block.
struct RecordedPayload {
  WireFormat format = WireFormat::kFloat32;
  uint64_t bytes = 0;
  // CRC-32C.
  uint32_t checksum = 0;
  friend bool operator==(const RecordedPayload&, const RecordedPayload&) = default;
};

// What came before initial values, as in InitialState of proto.
struct RecordedState {
  uint64_t updates = 0;
  uint64_t samples = 0;
  friend bool operator==(const RecordedState&, const RecordedState&) = default;
};

// What the momentum governor has measured as of an update, as in AsynchronyEstimates of proto.
struct RecordedAsynchrony {
  double staleness = 0;
  uint64_t pushes = 0;
  uint64_t updates_above_target = 0;
  friend bool operator==(const RecordedAsynchrony&, const RecordedAsynchrony&) = default;
};

// The next record of a stream. Its index is that of the one before it, plus 1; an update makes the
// next version. An update stands for the samples of all its pushes.
struct AppliedRecord {
  uint64_t stream = 0;
  bool is_update = false;
  // It gives the shard its initial values. There is no update, no push and no cut then.
  bool is_initial_values = false;
  // Of initial values that come with the optimizer's state.
  std::optional<RecordedState> initial_state;
  std::vector<AppliedPush> pushes;
  double rate_factor = 1;
  std::optional<double> momentum;
  // SnapshotOrder.id; 0 = no cut.
  uint64_t cut = 0;
  // Absent where gradients are not recorded, or there is no update and no initial values.
  std::optional<RecordedPayload> payload;
  // All 0 where the momentum is not governed.
  RecordedAsynchrony asynchrony;
  // Of an update by functions.
  std::vector<VectorFunction> functions;
  friend bool operator==(const AppliedRecord&, const AppliedRecord&) = default;
};

// The digest of a stream's content after its newest record, as replicas compare it.
struct ContentDigest {
  uint64_t stream = 0;
  uint64_t digest = 0;
  friend bool operator==(const ContentDigest&, const ContentDigest&) = default;
};

// The loop has ended in order: nothing is missing behind this entry.
struct RecordingEnd {
  friend bool operator==(const RecordingEnd&, const RecordingEnd&) = default;
};

using RecordingEntry = std::variant<ShardBegin, AppliedRecord, ContentDigest, RecordingEnd>;

// Appends the entry's bytes.
void EncodeEntry(const RecordingEntry& entry, std::vector<uint8_t>& bytes);
// The entries of a block. INVALID_ARGUMENT: no writer of this version makes such bytes; names the
// byte of the block, from 0.
absl::StatusOr<std::vector<RecordingEntry>> DecodeEntries(std::span<const uint8_t> bytes);

}  // namespace covey
