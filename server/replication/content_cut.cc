// SPDX-License-Identifier: Apache-2.0
#include "server/replication/content_cut.h"

#include <bit>
#include <cstddef>
#include <utility>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/planted_bug.h"
#include "common/base/random.h"
#include "common/cluster/limits.h"
#include "proto/parameter.pb.h"
#include "server/replication/shard_record.h"

namespace covey::server {
namespace {

// A part of the description is closed once it has this many bytes; one more producer adds at most
// 80 KiB.
constexpr size_t kRecordPartBytes = 1 << 20;
static_assert(kRecordPartBytes + kDedupWindow * 20 < kReplicaPieceBytesMax);

}  // namespace

uint64_t ContentCut::Digest() const {
  COVEY_CHECK(rows == nullptr);
  std::vector<uint64_t> checksums = {Crc32c(values.bytes())};
  for (const Buffer& slot : slots) checksums.push_back(Crc32c(slot.bytes()));
  return Digest(checksums);
}

uint64_t ContentCut::Digest(std::span<const uint64_t> parts) const {
  COVEY_CHECK(parts.size() == 1 + slots.size());
  uint64_t digest = MixBits(index);
  const auto take_in = [&digest](uint64_t value) { digest = MixBits(digest ^ value); };
  take_in(samples);
  take_in(discarded);
  take_in(last_cut);
  // Contents of earlier versions have no estimates, and keep their digests.
  if (asynchrony != AsynchronyEstimates()) {
    take_in(std::bit_cast<uint64_t>(asynchrony.staleness));
    take_in(asynchrony.pushes);
    take_in(asynchrony.updates_above_target);
  }
  // Those of dense shards, and of rows that all fit, have none.
  if (row_totals != SparseShard::Totals()) {
    take_in(row_totals.evicted);
    take_in(row_totals.refused);
  }
  proto::ShardState state;
  clocks.Describe(version, state);
  // Otherwise the digest would reveal the planted bug.
  if (!Planted(PlantedBug::kDropClocksOnMove)) take_in(state.clock_digest());
  take_in(push_history.Digest());
  for (const uint64_t part : parts) take_in(part);
  return digest;
}

std::vector<proto::ReplicaRecord> ContentCut::Describe() const {
  std::vector<proto::ReplicaRecord> parts(1);
  size_t bytes = 0;
  push_history.Describe([&](proto::ProducerRecord record) {
    if (bytes >= kRecordPartBytes) {
      parts.emplace_back();
      bytes = 0;
    }
    bytes += record.ByteSizeLong();
    *parts.back().add_producers() = std::move(record);
  });
  proto::ShardState state;
  clocks.Describe(version, state);
  proto::ReplicaRecord& last = parts.back();
  if (!Planted(PlantedBug::kDropClocksOnMove)) *last.mutable_clocks() = state.clocks();
  last.set_discarded(discarded);
  last.set_last_cut(last_cut);
  last.set_rows_evicted(row_totals.evicted);
  last.set_rows_refused(row_totals.refused);
  if (asynchrony != AsynchronyEstimates()) {
    server::Describe(asynchrony, *last.mutable_asynchrony());
  }
  return parts;
}

}  // namespace covey::server
