// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/cluster/ids.h"
#include "proto/view.pb.h"
#include "worker/layout/fusion_plan.h"
#include "worker/layout/part_map.h"

namespace covey::worker {

// Consecutive whole shards of one tensor, within one member's part of a bucket.
struct ShardRun {
  size_t tensor = 0;
  ShardIndex first_shard;
  uint32_t shard_count = 0;
  PartRange elements;  // within the bucket
};

// Tensors that travel together, consecutively in one buffer.
struct Bucket {
  struct Piece {
    size_t tensor = 0;
    PartRange elements;  // within the bucket
  };
  std::vector<Piece> pieces;  // in the order of the model
  size_t element_count = 0;
  // One entry per member: its part of the bucket, and the shards of tensors in that part.
  std::vector<PartRange> parts;
  std::vector<std::vector<ShardRun>> runs;

  // Position in the model of the tensor that the next forward pass needs first.
  size_t position() const { return pieces.front().tensor; }
};

// How the tensors of a model travel through a group: the tensors of each bucket (fusion_plan.h),
// and the member responsible for each of their shards (part_map.h). A single tensor may be a
// bucket.
//
// Pure: every member computes the same layout from the same tables. Immutable.
class ModelLayout {
 public:
  // `tables` in the order of the model, each with its shards; members >= 1. `kinds`: one per table,
  // tables of different kinds do not share buckets; empty = all are of one kind.
  ModelLayout(std::span<const proto::Table* const> tables, uint32_t members,
              const FusionLimits& fusion, std::span<const FusionKind> kinds = {});

  const std::vector<Bucket>& buckets() const { return buckets_; }
  size_t bucket_of(size_t tensor) const { return places_[tensor].bucket; }
  // The tensor's elements within its bucket.
  PartRange place_of(size_t tensor) const { return places_[tensor].elements; }
  // The part of each member, in elements of the tensor; it determines the order of summation.
  std::vector<PartRange> parts_of(size_t tensor) const;

 private:
  struct Place {
    size_t bucket = 0;
    PartRange elements;
  };

  std::vector<Bucket> buckets_;
  std::vector<Place> places_;  // by tensor
};

}  // namespace covey::worker
