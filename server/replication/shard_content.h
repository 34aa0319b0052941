// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/buffer.h"
#include "common/cluster/ids.h"
#include "common/contract/momentum_governor.h"
#include "common/contract/read_gate.h"
#include "proto/replication.pb.h"
#include "server/replication/content_cut.h"
#include "server/replication/push_history.h"
#include "server/replication/shard_record.h"
#include "server/sparse/sparse_shard.h"
#include "server/table/dense_shard.h"
#include "server/table/table_memory.h"

namespace covey::server {

// The state that all replicas of a shard share: values and optimizer state, of elements or of rows,
// version and samples, the clock vector, the history of pushes, and what the momentum governor has
// measured. Only Apply changes it, once it is filled. Two replicas that have applied the same
// records are equal bit for bit, on any servers.
//
// Actor-confined. Deterministic: depends on the definition and the records only.
class ShardContent {
 public:
  using Config = std::variant<DenseShardConfig, SparseShardConfig>;

  // Before the first record: values from the initializer. RESOURCE_EXHAUSTED: too little memory is
  // free. Other errors as DenseShard::Create and SparseShard::Create.
  static absl::StatusOr<std::unique_ptr<ShardContent>> Create(absl::Time now, const Config& config,
                                                              TableMemory& memory);

  // The next record. FAILED_PRECONDITION: it is not the next one, of index or version, or it holds
  // initial values and pushes came before, or a state of another optimizer; nothing has changed
  // then. INVALID_ARGUMENT: a key of the gradient lies outside the shard, or as CheckFunctions.
  // Precondition: `gradient` is the record's, decoded: the initial values, or empty when there is
  // no update, or one by functions.
  absl::Status Apply(absl::Time now, const ShardRecord& record, const Gradient& gradient);

  // Everything as of the newest record, to be sent or saved. Reads no value and no slot where they
  // are in the host's memory; a device copies them out of its own.
  ContentCut Cut() const;
  // Equal for equal content. One pass over all bytes.
  uint64_t Digest() const;
  // Equal for equal content. Of a sparse shard it covers a few thousand rows, others after each
  // record, because all may be many GiB.
  uint64_t RecordDigest() const;
  // Continues from a content: its values and slots, and all parts of ContentCut::Describe() with
  // the digest in the last. FAILED_PRECONDITION: the digest differs. INVALID_ARGUMENT: no server
  // makes such a description. After an error the content must not be used.
  absl::Status Restore(absl::Time now, uint64_t index, uint64_t version, uint64_t samples,
                       Buffer values, std::vector<Buffer> slots,
                       const std::vector<proto::ReplicaRecord>& records);

  // The same of a sparse shard, whose rows were restored.
  absl::Status RestoreRest(absl::Time now, uint64_t index, uint64_t version, uint64_t samples,
                           const std::vector<proto::ReplicaRecord>& records);

  // Begins as after that many updates, instead of as the initializer makes it, without the clocks
  // and pushes of these. Precondition: no record was applied.
  void Begin(Buffer values, std::vector<Buffer> slots, uint64_t version, uint64_t samples);
  // Removes all rows. Precondition: sparse.
  void ClearRows() { sparse_ = sparse_->Empty(); }

  uint64_t index() const { return index_; }  // of the newest record
  Version version() const { return Version(dense_ ? dense_->version() : sparse_->version()); }
  uint64_t samples() const { return dense_ ? dense_->samples() : sparse_->samples(); }
  // Null where the table is dense.
  const SparseShard* sparse() const { return sparse_.get(); }
  SparseShard* sparse() { return sparse_.get(); }
  GradientShape shape() const {
    return dense_ ? GradientShape{.elements = element_count(), .matrix = dense_->matrix()}
                  : GradientShape{.row_width = sparse_->width()};
  }
  // Whether the history has pushes. Without any, the shard may take initial values.
  bool has_pushes() const {
    return push_history_.size() > 0 || clocks_.highest() != Step() || discarded_ > 0;
  }
  // Values and slots, as they are stored.
  uint64_t bytes() const;
  // The same with the memory of rows that went: what it takes of the server's budget of tables.
  uint64_t memory_bytes() const { return sparse_ ? sparse_->row_bytes() : bytes(); }
  // What it takes before the first record. INVALID_ARGUMENT: as Create.
  static absl::StatusOr<uint64_t> MemoryBytesOf(const Config& config);

  // Of a sparse shard: rows that the newest update did not make, because the shard is full.
  uint64_t rows_refused() const { return rows_refused_; }

  // Of a dense shard only.
  uint64_t element_count() const { return dense_->element_count(); }
  uint64_t first_element() const { return dense_->first_element(); }
  // As ShardMemory.
  Buffer NewArray() { return dense_->NewArray(); }
  uint64_t value_bytes() const { return element_count() * sizeof(float); }
  Buffer Values() const { return dense_->Values(); }
  // Checksum of Values(); computed once per version.
  uint32_t ValuesChecksum() const;
  // As DenseShard; of a sparse shard 0.
  size_t vectors() const { return dense_ ? dense_->vectors() : 0; }
  std::vector<VectorAnswer> Answer(std::span<const VectorQuery> queries) const {
    return dense_->Answer(queries);
  }
  size_t slots() const { return dense_->slots(); }
  Buffer Slot(size_t slot) const { return dense_->Slot(slot); }

  const PushHistory& push_history() const { return push_history_; }
  const ClockVector& clocks() const { return clocks_; }
  uint64_t discarded() const { return discarded_; }  // pushes that are part of no update
  uint64_t last_cut() const { return last_cut_; }    // SnapshotOrder.id of the newest; 0 = none
  // As of the newest update.
  const AsynchronyEstimates& asynchrony() const { return asynchrony_; }
  // By this replica's own clock.
  absl::Time last_update() const { return last_update_; }

  // Plants PlantedBug::kForgetDedupOnTakeover.
  void ForgetPushes() { push_history_ = PushHistory(); }
  // Plants PlantedBug::kForgetNormsOnTakeover.
  void ForgetNorms() { push_history_.ForgetNorms(); }

 private:
  ShardContent(std::unique_ptr<DenseShard> dense, std::shared_ptr<SparseShard> sparse,
               absl::Time now)
      : dense_(std::move(dense)), sparse_(std::move(sparse)), last_update_(now) {}
  absl::Status ApplyUpdate(const ShardRecord& record, const Gradient& gradient);
  // As SparseShard::Apply. RESOURCE_EXHAUSTED: there is no memory for new rows; the content is not
  // that of any record any more.
  absl::Status ApplyRows(const ShardRecord& record, const Gradient& gradient);
  // All but the rows or the arrays.
  ContentCut CutRest() const;
  // Precondition: has_pushes() is false, and `record` has a state of as many slots as this content,
  // or none.
  void TakeInitialValues(const ShardRecord& record, std::span<const float> values);

  // One of them; the other is null.
  const std::unique_ptr<DenseShard> dense_;
  std::shared_ptr<SparseShard> sparse_;
  uint64_t index_ = 0;
  PushHistory push_history_;
  ClockVector clocks_;
  uint64_t discarded_ = 0;
  uint64_t last_cut_ = 0;
  uint64_t rows_refused_ = 0;
  AsynchronyEstimates asynchrony_;
  absl::Time last_update_;
  // The version of the checksum, and the checksum.
  mutable std::optional<std::pair<uint64_t, uint32_t>> checksum_;
};

}  // namespace covey::server
