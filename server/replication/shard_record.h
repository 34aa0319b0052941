// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/cluster/ids.h"
#include "common/contract/momentum_governor.h"
#include "common/net/message.h"
#include "common/vectors/vector_function.h"
#include "proto/replication.pb.h"
#include "server/replication/gradient.h"
#include "server/replication/push_history.h"
#include "server/sparse/eviction.h"
#include "server/table/dense_shard.h"

namespace covey::server {

// With what the optimizer begins, where initial values come with its state.
struct InitialState {
  std::vector<EncodedGradient> slots;  // all of the optimizer's, in its order and in float32
  uint64_t updates = 0;                // that have made the values
  uint64_t samples = 0;                // in these updates
};

// A push in a record.
struct RecordedPush {
  PushKey key;  // sequence 0: no push; the producer is gone and is forgotten to free memory
  GroupId group;
  Step step;
  // The push is part of no update. Its step still counts in the clock vector, unless `group` is
  // left out.
  bool discarded = false;
  // Of a table with a gate: the norm of the push, 0 = it has none; and whether it is beyond the
  // gate.
  float norm = 0;
  bool is_beyond_gate = false;
  // What recordings say of the push; it does not travel along the chain.
  uint64_t samples = 0;
  Version base_version;  // the gradient was computed on it; 0 = unknown
};

// One entry of a shard's history: at most one update, with everything that makes replicas apply it
// alike. A value; copies share the frame.
struct ShardRecord {
  uint64_t index = 0;                           // from 1, without a gap
  Version version;                              // 0 = no update
  absl::InlinedVector<RecordedPush, 2> pushes;  // in the order of summation
  uint64_t samples = 0;
  UpdateAdjustment adjustment;
  AsynchronyEstimates asynchrony;  // of an update
  // Without a frame when there are no values and no update.
  EncodedGradient gradient;
  // Of an update of a sparse shard: what goes before it is applied.
  std::vector<Eviction> evictions;
  // Of an update of a table of vectors, in place of a gradient; without samples.
  std::vector<VectorFunction> functions;
  // The gradient's frame holds the initial values, in float32. There is no update, no push and no
  // cut then.
  bool initial_values = false;
  // Of initial values; nothing = the optimizer begins empty.
  std::optional<InitialState> initial_state;
  std::optional<uint64_t> digest;
  // SnapshotOrder.id of the snapshot that this record cuts; 0 = none. It has no update and no
  // pushes then. And SnapshotOrder.epoch.
  uint64_t cut = 0;
  Epoch cut_epoch;

  // Of all frames.
  size_t frame_bytes() const;
};

// The record that cuts the history for a snapshot, which the view ordered in `epoch`.
ShardRecord CutRecord(uint64_t snapshot, Epoch epoch);
// The record that gives the shard its initial values.
ShardRecord InitialValuesRecord(EncodedGradient values, std::optional<InitialState> state = {});

// ReplicateRequest with the frames and their checksums, which are made when the record has none.
Message ToMessage(ShardRecord& record);
// A ReplicateRequest that is a query whether the record, and all before it, are held. Unlike a
// record, it has neither pushes, nor an update, nor a cut, nor initial values.
Message QueryAfter(uint64_t index);
bool IsQuery(const proto::ReplicateRequest& request);
// Of a record, and of a content's description. INVALID_ARGUMENT: no server measures this.
absl::StatusOr<AsynchronyEstimates> AsynchronyOf(const proto::AsynchronyEstimates& estimates);
void Describe(const AsynchronyEstimates& estimates, proto::AsynchronyEstimates& to);
// INVALID_ARGUMENT: no server of this version makes such a record for a shard of this shape. Looks
// neither at the bytes of the frames, nor at the number of slots that initial values come with.
absl::StatusOr<ShardRecord> ShardRecordOf(const Message& message, const GradientShape& shape);

// The newest records of a shard's history, kept to be resent. Actor-confined.
class RecordLog {
 public:
  // Removes all records. The next one has the index `next`.
  void Reset(uint64_t next);
  // Precondition (checked): the index is next().
  void Add(ShardRecord record);
  // Removes the records below `index`.
  void TrimBelow(uint64_t index);

  uint64_t first() const { return first_; }
  uint64_t next() const { return first_ + records_.size(); }
  // Precondition: first() <= index < next().
  ShardRecord& At(uint64_t index) { return records_[index - first_]; }
  size_t size() const { return records_.size(); }
  size_t bytes() const { return bytes_; }  // of frames
  // Whether it holds the largest number of unacknowledged records that limits.h allows.
  bool IsFull() const;

 private:
  std::deque<ShardRecord> records_;
  uint64_t first_ = 1;
  size_t bytes_ = 0;
};

}  // namespace covey::server
