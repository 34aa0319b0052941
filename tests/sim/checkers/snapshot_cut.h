// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/cluster/ids.h"
#include "common/snapshot/shard_entries.h"
#include "common/snapshot/snapshot_reader.h"
#include "common/store/folder.h"
#include "proto/snapshot.pb.h"
#include "tests/sim/checkers/shard_reply.h"
#include "tests/sim/checkers/step_rows.h"
#include "tests/sim/checkers/stored_shard.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/observer.h"

namespace covey::sim {

// Groups push steps; each push adds to one element of its own in every shard, so the values show
// which steps they contain. Of a sparse table the home rows do (step_rows.h).
//
// Invariants:
//  - a complete snapshot holds of each group in its cut exactly the pushes of the steps up to the
//    cut, each once, and of groups that had ended what was durable before; clocks, windows and
//    optimizer slots are those of these pushes. Only a push that was not durable when the last of
//    its senders departed may be missing;
//  - it is what every replica held that applied the record of the cut;
//  - a snapshot that was published stays complete, whatever crashes and whichever others are
//    removed, until it is removed itself;
//  - a job that continues a snapshot has what the snapshot holds, and of the earlier job nothing
//    else.
// Where a shard has lost its content meanwhile, only what must not be there is checked. Of a sparse
// table whose rows are made late, or go, only that replicas and snapshot hold the same at the cut;
// rows_at_cut.h knows more of its rows.
//
// Actor-confined.
class SnapshotCut : public Observer {
 public:
  struct Options {
    // Of each shard.
    size_t elements = 0;
    // Where they are adaptive, the optimizer has a slot that is 0 where no push was applied.
    StepValues values = {};
    // bsp, local: a step, or round, is one update of all groups. What a group that has ended had
    // pushed for one after the cut is held until then, although its sender was told that it is
    // durable.
    bool has_common_steps = false;
  };
  // What a loop of a server holds of a shard; nothing when it holds no content.
  struct Held {
    uint64_t chain_epoch = 0;
    uint64_t index = 0;
    uint64_t digest = 0;
  };
  using Look =
      std::function<std::optional<Held>(absl::string_view server, uint32_t loop, ShardId shard)>;

  SnapshotCut(const Options& options, Look look, Violations& violations)
      : options_(options), look_(std::move(look)), violations_(violations) {}

  void OnSend(absl::Time now, const Message& message) override;
  void OnReceived(absl::Time now, absl::string_view receiver, const Message& message) override;

  // The manifest of this snapshot has been published.
  void Published(Folder& store, const std::string& folder);
  // Called by Published for each shard that groups train: what the snapshot holds of it.
  void CheckShard(const proto::SnapshotManifest& manifest, const proto::SnapshotShard& entry,
                  const StoredShard& stored);
  // This snapshot, or a file in its folder, has been removed.
  void Removed(Folder& store, const std::string& folder);
  // All processes were killed, and the store has crashed. The next job continues the snapshot.
  void StartOver(Folder& store, const std::string& folder);
  // Whether a shard that groups train has lost content in the present job.
  bool history_was_lost() const { return history_was_lost_; }
  // Whether any snapshot is complete.
  bool has_published() const { return !published_.empty(); }

 private:
  using GroupStep = std::pair<GroupId, Step>;
  struct Push {
    uint64_t element = 0;
    std::set<uint64_t> senders;  // nodes
  };

  void NoteView(const proto::ClusterView& view);
  void NotePush(const Message& message);
  // The element that a push adds to; nothing when the message holds no gradient.
  std::optional<uint64_t> ElementOfPush(const Message& message);
  // What a snapshot holds of a shard. Of a sparse table whose rows are whole it has elements, too.
  absl::StatusOr<StoredShard> Read(const SnapshotReader& snapshot, const ShardEntries& entries);
  // The snapshot's content is that of the replicas at its cut.
  void CheckHeld(const std::string& where, const proto::SnapshotManifest& manifest,
                 const proto::SnapshotShard& entry, const StoredShard& stored);
  void CheckReply(uint64_t epoch, const ShardReply& reply);
  void CheckSteps(const std::string& where, uint64_t ordered_at, const std::map<GroupId, Step>& cut,
                  const ShardHistory& history, const StoredShard& stored);
  void CheckRecord(const std::string& where, const std::map<GroupId, Step>& cut,
                   const ShardHistory& history, const StoredShard& stored);
  // Elements of pushes by groups of earlier jobs.
  void CheckBefore(const std::string& where, const ShardHistory& history,
                   std::span<const float> values);
  // Whether a node that sent the push may send it again.
  bool HasSender(const Push& push) const;
  bool IsOnce(float value) const;
  bool IsIntact(const ShardHistory& history) const;
  bool IsOfThisJob(GroupId group) const { return groups_.contains(group); }
  void Complain(const std::string& where, const std::string& what);

  const Options options_;
  const Look look_;
  Violations& violations_;
  PushedElements elements_;
  std::map<ShardId, std::map<GroupStep, Push>> pushes_;
  // Nodes that are dead or have left.
  std::set<uint64_t> departed_;
  // With the server's epoch when it first said so.
  std::map<std::pair<ShardHistory, GroupStep>, uint64_t> durable_;
  // Digests of the replicas that applied the record of a cut, by history and snapshot.
  std::map<std::pair<ShardHistory, uint64_t>, uint64_t> cuts_;
  std::set<std::string> published_;
  // Of the present job: its groups, the first generation of each shard, and the values that it
  // began with.
  std::set<GroupId> groups_;
  std::map<ShardId, uint64_t> first_generation_;
  std::map<ShardId, std::vector<float>> begun_with_;
  bool history_was_lost_ = false;
};

}  // namespace covey::sim
