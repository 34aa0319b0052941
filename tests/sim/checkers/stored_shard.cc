// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/stored_shard.h"

#include <algorithm>
#include <span>

#include "absl/strings/str_cat.h"
#include "common/base/buffer.h"
#include "common/base/status_macros.h"
#include "server/replay/stored_content.h"

namespace covey::sim {
namespace {

std::vector<float> Elements(const Buffer& array) {
  const std::span<const float> floats = array.As<float>();
  return {floats.begin(), floats.end()};
}

}  // namespace

absl::StatusOr<StoredShard> ReadStoredShard(const SnapshotReader& snapshot,
                                            const ShardEntries& entries) {
  const auto& tables = snapshot.manifest().state().view().tables();
  const proto::SnapshotShard& entry = *entries.content;
  const auto table = std::find_if(tables.begin(), tables.end(), [&](const proto::Table& one) {
    return one.id() == entry.table();
  });
  COVEY_ASSIGN_OR_RETURN(
      const server::ContentCut content,
      server::ReadStoredContent(snapshot, *table, table->shards(static_cast<int>(entry.shard())),
                                entries));
  StoredShard stored;
  stored.values = Elements(content.values);
  for (const Buffer& slot : content.slots) stored.slots.push_back(Elements(slot));
  for (const proto::ReplicaRecord& part : content.Describe()) stored.record.MergeFrom(part);
  stored.record.set_digest(content.Digest());
  return stored;
}

}  // namespace covey::sim
