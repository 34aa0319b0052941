// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "proto/snapshot.pb.h"
#include "server/replication/load_source.h"
#include "server/snapshot/load_plan.h"
#include "server/snapshot/shard_rebuild.h"

namespace covey::server {

// Reads shards that begin from a snapshot from the store, for one loop: one shard after the other,
// a bounded number of pieces in flight. Each piece is checked before it is given on. What the store
// cannot read (UNAVAILABLE: a network file system has its moments) is requested up to kAttempts
// times in a row.
//
//   Want ─▶ manifest of the folder, once ─▶ pieces in their order ─┬─────────────────▶ TakePieces
//                                                                  └▶ ShardRebuild ─────▶┘
//
// Actor-confined. Deterministic. Memory: the manifest, as long as shards are wanted; two pieces;
// and where logs of updates are applied, a content of the snapshot's shards.
class ShardLoader {
 public:
  static constexpr int kAttempts = 5;

  struct Piece {
    ShardId shard;
    // A ReplicaPiece with its frame; or why the shard cannot be loaded: then none follows. Errors:
    // as the store, DATA_LOSS: damaged, others as PlanLoad.
    absl::StatusOr<Message> message;
  };

  // The shard is to be loaded from there.
  void Want(ShardId shard, LoadSource source, NodeId self, Outbox& outbox);
  // Precondition: a StoreReply of this process. False: it is no reply to this loader.
  bool OnStoreReply(const Message& reply, Outbox& outbox);
  // The pieces that have arrived since the last call.
  std::vector<Piece> TakePieces() { return std::exchange(arrived_, {}); }

 private:
  struct Wanted {
    ShardId shard;
    LoadSource source;
  };

  void SendMore(Outbox& outbox);
  void Request(const std::string& path, const proto::StoreRead& read, Outbox& outbox);
  void OnManifest(const Message& reply);
  // The next piece of the plan has arrived, and is given on. Errors: it is not what it should be.
  absl::Status TakePiece(const Message& reply);
  // The same for a piece of a shard that is rebuilt, which ends with the last of its pieces.
  absl::Status AddToRebuild(const PlannedPiece& planned, const Buffer& payload);
  // The first wanted shard is done with.
  void Finish();
  // Whether what has failed with this status is to be requested again.
  bool TriesAgain(const absl::Status& status);
  void Fail(const absl::Status& why);

  NodeId self_;
  std::deque<Wanted> wanted_;  // the first is being read
  // Of the folder named in it.
  std::optional<proto::SnapshotManifest> manifest_;
  std::vector<PlannedPiece> plan_;  // of the first; empty = not made yet
  size_t next_to_request_ = 0;
  size_t next_to_arrive_ = 0;
  std::unique_ptr<ShardRebuild> rebuild_;
  std::vector<Message> rebuilt_;          // pieces that wait for all others
  int failures_ = 0;                      // in a row
  std::map<uint64_t, size_t> requested_;  // piece by request, or kManifest
  uint64_t next_request_ = uint64_t{1} << 62;
  std::vector<Piece> arrived_;
};

}  // namespace covey::server
