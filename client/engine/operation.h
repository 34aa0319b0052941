// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "client/engine/requests/key_batch.h"
#include "client/initial_state.h"
#include "client/operation_result.h"
#include "client/read_bound.h"
#include "common/base/buffer.h"
#include "common/cluster/ids.h"
#include "common/runtime/actor.h"
#include "common/tensor/outer_product.h"
#include "common/tensor/wire_format.h"
#include "common/vectors/vector_function.h"

namespace covey::client {

// The producer of a group's push: each shard applies one update per group and step, whichever
// member sends it.
struct GroupIdentity {
  GroupId group;
  uint64_t generation = 0;
  Step step;
};

// What an operation does on a sparse table, with the rows of a batch's keys.
struct KeyedOperation {
  std::shared_ptr<const KeyBatch> batch;
  bool pushes = false;
  bool pulls = false;
};

// A piece of the rows of a shard, or of what changed in it (proto::ScannedRows).
struct ScannedRows {
  // It is complete for MixBits(key) from ScanOperation::first to here.
  uint64_t last = 0;
  ShardVersion version;
  uint64_t samples = 0;  // behind the shard
  // Ascending by MixBits(key), with a row for each.
  std::vector<uint64_t> keys;
  std::vector<float> rows;
  // In order of time; a key may repeat, and have a row again.
  std::vector<uint64_t> removed;
};

// What an operation reads of one shard of a sparse table, whatever the keys (proto::RowScan).
struct ScanOperation {
  uint64_t first = 0;       // MixBits(key) from which on
  uint64_t generation = 0;  // that was read before; 0 = none
  std::optional<uint64_t> since = {};
  size_t width = 0;  // of the table
  // Takes the piece; after an error its contents are undefined.
  ScannedRows* into = nullptr;
};

// A push, a pull, or both in one round trip, on consecutive whole shards of one table.
//
// Memory: `gradient` stays valid and unchanged, `values` and `residual` valid and untouched, until
// `done` is called; a gradient in shared memory for longer (`gradient_memory`). `done` is always
// called once, at the latest soon after the deadline.
struct Operation {
  TableId table;
  ShardIndex first_shard;
  // 0 = all shards from first_shard on.
  uint32_t shard_count = 0;
  // Set for a sparse table: all its shards are covered. `gradient` has a row for each distinct key
  // of the batch, in the order of KeyBatch; `values` one for each key of the mini-batch, as it was
  // assigned. Both may be empty where there are no keys.
  std::optional<KeyedOperation> keyed;
  // Set for a scan of a sparse table, of exactly one shard. `into` stays valid and untouched until
  // `done` is called.
  std::optional<ScanOperation> scan = {};
  // Sum over `samples` examples of per-example gradients, for exactly these shards. Empty = no
  // push.
  std::span<const float> gradient;
  // In place of it, of a push to all shards of a dense table: factors of all rows of its matrix,
  // valid and unchanged as `gradient`. Each shard gets them, or its elements of the gradient where
  // these take fewer bytes.
  std::optional<Factors> factors = {};
  // Optional: the memory that `gradient` lies in, shared by the caller and the engine. A push that
  // is not durable is then kept there instead of in a copy, and frames that are still being sent do
  // not delay `done`. So the gradient stays unchanged until no handle but the caller's own is left.
  // A caller that needs the memory sooner calls RequestEngine::ReleaseGradient.
  Buffer gradient_memory;
  // Receives the values. Empty = no pull.
  std::span<float> values;
  // The wire format that the values are asked for in; only of a dense table, without slots. A
  // server that does not know the format sends float32.
  WireFormat value_format = WireFormat::kFloat32;
  // Of a pull without a push: arrays of the optimizer's state that `values` has room for after the
  // values, each as long as these.
  size_t slots = 0;
  // The gradient's place holds initial values, which this client gives under that epoch
  // (Initialization.epoch): they replace the table's. 0 = a gradient.
  Epoch initialization;
  // Of a table of vectors: a push of functions in place of a gradient, or a pull of answers in
  // place of values. One of them at most, and nothing else then.
  std::vector<VectorFunction> functions;
  std::vector<VectorQuery> queries;
  // Of initial values: the optimizer's state that comes with them; absent = it begins empty. The
  // slots stay valid and unchanged as `gradient`, and are of the same shards.
  std::optional<InitialState> initial_state;
  // 0 only for a group: its step had none, and its place in the table's order is filled.
  uint64_t samples = 1;
  // Multiplies the learning rate of the table's schedule; from 0 to kRateFactorMax.
  double rate_factor = 1;
  // The gradient's format on the wire. Unless that is float32 without feedback, the gradient is
  // encoded once per shard, when that shard's request first leaves; a retry sends the same bytes.
  WireFormat format = WireFormat::kFloat32;
  // Error feedback. Before the push it holds the rounding error of the last push of these shards,
  // which is added to this one; afterwards it holds the error of this one, which is 0 in float32.
  // It has the gradient's length; empty = no feedback. After a failed operation each shard's part
  // holds the one or the other.
  std::span<float> residual;
  // Absent = a push of this client.
  std::optional<GroupIdentity> group;
  ReadBound read;
  absl::Time deadline = absl::InfiniteFuture();
  // Runs on the loop.
  std::function<void(absl::Time, const OperationResult&, Outbox&)> done;

  bool calls() const { return !functions.empty() || !queries.empty(); }
  bool pushes() const {
    return keyed ? keyed->pushes : !gradient.empty() || factors || !functions.empty();
  }
  bool pulls() const { return keyed ? keyed->pulls : scan || !values.empty(); }
};

}  // namespace covey::client
