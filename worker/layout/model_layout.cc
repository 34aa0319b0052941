// SPDX-License-Identifier: Apache-2.0
#include "worker/layout/model_layout.h"

#include <algorithm>

#include "common/base/check.h"

namespace covey::worker {
namespace {

uint64_t ElementCount(const proto::Table& table) {
  const proto::Shard& last = table.shards(table.shards_size() - 1);
  return last.first_element() + last.element_count();
}

// A bucket as a single table, so that parts consist of whole shards of its tensors.
struct Joined {
  struct Origin {
    size_t tensor = 0;
    ShardIndex shard;
  };
  proto::Table table;
  std::vector<Origin> origins;  // of each shard of `table`
};

Joined Join(std::span<const proto::Table* const> tables, const Bucket& bucket) {
  Joined joined;
  for (const Bucket::Piece& piece : bucket.pieces) {
    for (const proto::Shard& shard : tables[piece.tensor]->shards()) {
      proto::Shard& copy = *joined.table.add_shards();
      copy.set_index(static_cast<uint32_t>(joined.origins.size()));
      copy.set_first_element(piece.elements.first + shard.first_element());
      copy.set_element_count(shard.element_count());
      joined.origins.push_back({piece.tensor, ShardIndex(shard.index())});
    }
  }
  return joined;
}

std::vector<ShardRun> RunsOf(const Joined& joined, const TablePart& part) {
  std::vector<ShardRun> runs;
  for (uint32_t i = 0; i < part.shard_count; ++i) {
    const uint32_t index = part.first_shard.value() + i;
    const Joined::Origin& origin = joined.origins[index];
    const proto::Shard& shard = joined.table.shards(static_cast<int>(index));
    if (runs.empty() || runs.back().tensor != origin.tensor) {
      runs.push_back({.tensor = origin.tensor,
                      .first_shard = origin.shard,
                      .elements = {.first = shard.first_element(), .count = 0}});
    }
    ++runs.back().shard_count;
    runs.back().elements.count += shard.element_count();
  }
  return runs;
}

}  // namespace

ModelLayout::ModelLayout(std::span<const proto::Table* const> tables, uint32_t members,
                         const FusionLimits& fusion, std::span<const FusionKind> kinds)
    : places_(tables.size()) {
  COVEY_CHECK(kinds.empty() || kinds.size() == tables.size());
  std::vector<FusionTensor> tensors;
  for (size_t t = 0; t < tables.size(); ++t) {
    tensors.push_back({.bytes = ElementCount(*tables[t]) * sizeof(float),
                       .kind = kinds.empty() ? FusionKind() : kinds[t]});
  }
  for (const std::vector<size_t>& fused : PlanFusion(tensors, fusion)) {
    Bucket& bucket = buckets_.emplace_back();
    for (const size_t tensor : fused) {
      const PartRange elements{.first = bucket.element_count,
                               .count = static_cast<size_t>(ElementCount(*tables[tensor]))};
      bucket.pieces.push_back({.tensor = tensor, .elements = elements});
      places_[tensor] = {.bucket = buckets_.size() - 1, .elements = elements};
      bucket.element_count += elements.count;
    }
  }
  std::vector<Joined> joined;
  for (const Bucket& bucket : buckets_) joined.push_back(Join(tables, bucket));
  std::vector<const proto::Table*> whole;
  for (const Joined& one : joined) whole.push_back(&one.table);
  const PartMap map(whole, members);
  for (size_t b = 0; b < buckets_.size(); ++b) {
    buckets_[b].parts = map.ranges_of(b);
    for (const TablePart& part : map.parts_of(b)) {
      buckets_[b].runs.push_back(RunsOf(joined[b], part));
    }
  }
}

std::vector<PartRange> ModelLayout::parts_of(size_t tensor) const {
  std::vector<PartRange> parts;
  const Bucket& bucket = buckets_[places_[tensor].bucket];
  for (const std::vector<ShardRun>& runs : bucket.runs) {
    PartRange part;
    for (const ShardRun& run : runs) {
      if (run.tensor != tensor) continue;
      part = {.first = run.elements.first - places_[tensor].elements.first,
              .count = run.elements.count};
    }
    parts.push_back(part);
  }
  return parts;
}

}  // namespace covey::worker
