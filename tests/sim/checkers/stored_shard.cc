// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/stored_shard.h"

#include <span>
#include <string>

#include "common/base/buffer.h"
#include "common/base/status_macros.h"

namespace covey::sim {
namespace {

void Append(const Buffer& payload, std::vector<float>& elements) {
  const std::span<const float> floats = payload.As<float>();
  elements.insert(elements.end(), floats.begin(), floats.end());
}

}  // namespace

absl::StatusOr<StoredShard> ReadStoredShard(const SnapshotReader& snapshot,
                                            const proto::SnapshotShard& entry) {
  StoredShard stored;
  for (const proto::SnapshotPiece& piece : entry.pieces()) {
    COVEY_ASSIGN_OR_RETURN(const Buffer payload, snapshot.ReadPiece(entry, piece));
    if (piece.kind() == proto::ReplicaPiece::VALUES) {
      Append(payload, stored.values);
    } else if (piece.kind() == proto::ReplicaPiece::SLOT) {
      if (stored.slots.size() <= piece.slot()) stored.slots.resize(piece.slot() + 1);
      Append(payload, stored.slots[piece.slot()]);
    } else {
      proto::ReplicaRecord part;
      if (!part.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
        return absl::DataLossError("a record cannot be parsed");
      }
      stored.record.MergeFrom(part);
    }
  }
  return stored;
}

}  // namespace covey::sim
