// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/functional/function_ref.h"
#include "common/base/buffer.h"
#include "common/cluster/ids.h"
#include "common/snapshot/part_format.h"
#include "proto/process.pb.h"
#include "proto/scheduler.pb.h"
#include "server/replication/shard_record.h"
#include "server/snapshot/update_batch.h"

namespace covey::server {

// Logs what a loop's shards apply after their cuts by a flush to a file of the store, so that the
// next flush need not store their content again.
//
//   record ─▶ a batch of its shard, from 16 KiB on ─▶ waits ─▶ store, a bounded number of bytes
//
// Training never waits for it. A shard whose updates would take more than its share of bytes, or
// than the memory for what waits, is counted only, and its content is stored by the next flush.
//
// Used by SnapshotWriter. Actor-confined. Deterministic. Memory: frames that are not in the store
// yet, at most kHeldBytesMax, and the entries of the manifest.
class UpdateLog {
 public:
  // Of frames; a disk at 400 MB/s takes them in 0.7 s.
  static constexpr uint64_t kHeldBytesMax = 256 << 20;
  // Sends a request to the store; its id.
  using Send = absl::FunctionRef<uint64_t(proto::StoreRequest, std::vector<Buffer>)>;

  // `header` and `folder`: of the flush whose cuts begin it.
  UpdateLog(const PartHeader& header, std::string folder, std::string name)
      : header_(header), folder_(std::move(folder)), name_(std::move(name)) {}

  const std::string& folder() const { return folder_; }
  const std::string& name() const { return name_; }

  // The shard has been cut by record `cut`; what follows takes at most this many bytes. 0 = it is
  // counted only.
  void Begin(ShardId shard, uint64_t generation, uint64_t cut, uint64_t bytes_max);
  // The next record of a shard. Its frame is not in lent memory. Without effect for a shard that
  // was not begun.
  void Add(ShardId shard, uint64_t generation, ShardRecord& record);
  // The shard is counted only from now on. Without effect for a shard that was not begun.
  void Stop(ShardId shard);
  // Whether Add puts the shard's next record into the log, if there is room.
  bool IsLogged(ShardId shard) const;
  // The record whose cut began the shard's log, if all records from there to `index`, the newest,
  // are in the log; otherwise 0.
  uint64_t LoggedSince(ShardId shard, uint64_t generation, uint64_t index) const;
  // Bytes that all records of the shard take, logged or not; nothing when some were missed.
  std::optional<uint64_t> BytesOf(ShardId shard) const;
  // Of the shard only what is there now is needed, and it is needed: its newest batch is to be
  // stored.
  void Keep(ShardId shard);
  // Where the shard's records are; complete once they were kept.
  const std::vector<proto::SnapshotPiece>& PiecesOf(ShardId shard) const;

  // No record follows: what was kept is stored, and then the file synced.
  void Close() { is_closed_ = true; }
  // Whether it is closed, and is in the store for good; at once when nothing was kept.
  bool is_durable() const { return is_closed_ && (is_synced_ || !is_kept_); }
  // Whether the store has any of it, or is about to.
  bool has_file() const { return sent_bytes_ > 0; }
  // Of the file, once it is durable.
  uint64_t file_bytes() const { return end_; }

  // Sends what the store may have now. To be called after each call of the loop, and after replies.
  void SendMore(Send send);
  // Whether the reply to this request is the log's own; it counts then.
  bool OnStoreReply(uint64_t request);

 private:
  struct Part {
    uint64_t generation = 0;
    uint64_t cut = 0;
    uint64_t newest = 0;  // record
    uint64_t bytes = 0;   // that all records since the cut take
    uint64_t bytes_max = 0;
    bool is_counted = true;  // none was missed
    bool is_logged = false;
    UpdateBatch batch;
    std::vector<proto::SnapshotPiece> pieces;
  };
  struct Waiting {
    uint64_t bytes = 0;
    std::vector<Buffer> frames;
  };

  void Drop(Part& part);
  // The batch gets its place in the file.
  void Queue(ShardId shard, Part& part);
  void Wait(std::vector<Buffer> frames, uint64_t bytes);

  const PartHeader header_;
  const std::string folder_;
  const std::string name_;
  absl::btree_map<ShardId, Part> parts_;
  std::deque<Waiting> waiting_;
  uint64_t end_ = 0;                        // of the file, with what waits
  uint64_t sent_bytes_ = 0;                 // of it
  uint64_t held_bytes_ = 0;                 // in batches, waiting and in flight
  std::map<uint64_t, uint64_t> in_flight_;  // bytes by request
  uint64_t bytes_in_flight_ = 0;
  uint64_t sync_request_ = 0;  // 0 = not sent
  bool is_closed_ = false;
  bool is_kept_ = false;  // something of it
  bool is_synced_ = false;
};

}  // namespace covey::server
