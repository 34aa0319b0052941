// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/buffer.h"
#include "common/net/message.h"
#include "proto/process.pb.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// The snapshots in the store: finds those that are there, publishes the manifest of another one,
// and removes old ones. Of a snapshot the manifest is removed first.
//
// Complete snapshots beyond `kept` are old. Those stay that the job continues, or takes first
// values from, because a shard that loses all its servers is read from them again. An incomplete
// one goes once a newer one is complete: until then it may be in the making elsewhere.
//
// Used by Snapshots. Actor-confined, deterministic. `state` outlives it.
class StoredSnapshots {
 public:
  StoredSnapshots(size_t kept, const ClusterState& state) : kept_(kept), state_(state) {}

  // Once, before anything else: looks what the store holds.
  void List();
  // Whether the store has told all.
  bool is_listed() const { return listings_.empty(); }
  // Of all snapshots that were there, complete or not; 0 = none.
  uint64_t highest_id() const { return highest_id_; }

  // Stores the manifest of the snapshot in this folder; then it is complete.
  void Publish(const std::string& folder, Buffer manifest);
  // Removes a snapshot that cannot be completed.
  void Remove(const std::string& folder);
  // The result of the publication; nothing = `reply` is another one.
  std::optional<absl::Status> OnStoreReply(const Message& reply);
  // For the store, since the last call.
  std::vector<Message> TakeRequests() { return std::exchange(requests_, {}); }

 private:
  uint64_t Request(proto::StoreRequest request, Buffer bytes = Buffer());
  void ListFolder(const std::string& folder);
  void OnList(const std::string& folder, const proto::StoreReply& reply);
  void OnListed();
  // Whether servers may still read shards from it.
  bool IsInUse(const std::string& folder) const;
  void RemoveOld();

  const size_t kept_;
  const ClusterState& state_;
  uint64_t next_request_ = 1;
  std::vector<Message> requests_;
  // Folders that are being listed, by request; "" = the store's own.
  std::map<uint64_t, std::string> listings_;
  // Folders in growing order of id, once all are listed.
  std::vector<std::string> complete_;
  std::vector<std::string> incomplete_;
  uint64_t highest_id_ = 0;
  // The publication under way; 0 = none.
  uint64_t publication_ = 0;
  std::string published_;  // its folder
};

}  // namespace covey::scheduler
