// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/cluster/ids.h"
#include "proto/scheduler.pb.h"

namespace covey::server {

// Where the newest snapshots hold the shards that a loop has stored, so that a shard that has not
// changed since is not stored again, nor one whose updates since then are in a log.
//
// A shard is unchanged when all records since the stored one are cuts. The history of a generation
// has one record per index, whichever server holds it, so it is enough to see each cut follow the
// one before.
//
//   order ─▶ Cut ─▶ Find ─▶ Store, if it has changed, else Refer ─▶ base of the next order
//                   FindLogged ───────────────────────▶ Refer, with the log
//
// Used by SnapshotWriter. Actor-confined. Deterministic. Memory: two entries of a manifest per
// shard.
class StoredContents {
 public:
  // Of a file that holds shards: SnapshotFile.folder, never empty, and name.
  using File = std::pair<std::string, std::string>;
  // Of a shard: its content, and the logs that follow, each with its folder.
  using Entries = std::vector<proto::SnapshotShard>;

  // As in SnapshotOrder. What is stored and referred to from now on belongs to `folder`; what was
  // so for a snapshot that is neither the order before nor the base is forgotten.
  void Begin(const std::string& folder, const std::string& base);
  // The shard has been cut by the record `index`. All records between that and the cut
  // `logged_since` are in a log; 0 = not all are. To be called for each cut that the loop sees, in
  // their order, also for those of other orders.
  void Cut(ShardId shard, uint64_t generation, uint64_t index, uint64_t logged_since);
  // The shard as the base holds it, if its content at the newest cut is the same. Null: it must be
  // stored.
  const Entries* Find(ShardId shard) const { return Find(shard, /*is_logged=*/false); }
  // The shard as the base holds it, if the log of the newest cut has all that followed.
  const Entries* FindLogged(ShardId shard) const { return Find(shard, /*is_logged=*/true); }
  // The size of a file with an entry of the base.
  uint64_t BytesOf(const File& file) const { return base_.files.at(file); }

  // The shard as the base holds it, if a cut by the record `index` will find it unchanged or, with
  // what follows the cut `logged_since`, logged. To be asked before that cut.
  const Entries* Expect(ShardId shard, uint64_t generation, uint64_t index,
                        uint64_t logged_since) const;

  // The order's folder holds the shard, as of the cut that is the entry's index.
  void Store(proto::SnapshotShard entry);
  // The order refers to these entries of the base or, last, to a log since then: together they are
  // as of the cut. Precondition: the sizes of all files are known.
  void Refer(Entries entries, uint64_t cut);
  // A file of the order's folder is complete.
  void AddFile(const std::string& name, uint64_t bytes) {
    newest_.files[{newest_.folder, name}] = bytes;
  }
  // A log in the base's folder is complete.
  void AddLog(const std::string& name, uint64_t bytes) {
    base_.files[{base_.folder, name}] = bytes;
  }

 private:
  struct Content {
    Entries entries;
    uint64_t newest_cut = 0;  // the newest record as of which the content is that of the entries
    bool is_logged = false;   // what followed, up to a newer cut
  };
  struct Snapshot {
    std::string folder;
    std::map<ShardId, Content> shards;
    std::map<File, uint64_t> files;  // with their sizes
  };

  const Entries* Find(ShardId shard, bool is_logged) const;
  static void Cut(ShardId shard, uint64_t generation, uint64_t index, uint64_t logged_since,
                  Snapshot& snapshot);

  // The newest complete snapshot, and the newest that was ordered.
  Snapshot base_;
  Snapshot newest_;
};

}  // namespace covey::server
