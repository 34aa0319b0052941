// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/buffer.h"
#include "common/net/message.h"
#include "common/snapshot/needed_files.h"
#include "proto/process.pb.h"
#include "proto/snapshot.pb.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// The snapshots in the store: finds those that are there, publishes the manifest of another one,
// and removes old ones. Of a snapshot the manifest is removed first; its files stay as long as
// complete snapshots refer to them.
//
//   start:   the store's folders ─▶ the files of each ─▶ manifests, one at a time
//   publish: the files to which the manifest refers are there ─▶ the manifest ─▶ old ones removed
//
// Complete snapshots beyond `kept` are old. Those stay that the job continues, or takes first
// values from, because a shard that loses all its servers is read from them again. An incomplete
// one goes once a newer one is complete: until then it may be in the making elsewhere. Nothing
// older than a snapshot whose manifest cannot be read is removed, since it may be needed.
//
// Used by Snapshots. Actor-confined, deterministic. `state` outlives it. Memory: the names of
// files, and one manifest.
class StoredSnapshots {
 public:
  StoredSnapshots(size_t kept, const ClusterState& state) : kept_(kept), state_(state) {}

  // When the next snapshot is complete.
  void SetKept(size_t kept) { kept_ = kept; }

  // Once, before anything else: looks what the store holds.
  void List();
  // Whether the store has told all.
  bool is_listed() const { return listings_.empty() && reading_ == 0; }
  // Of all snapshots that were there, complete or not; 0 = none.
  uint64_t highest_id() const { return highest_id_; }
  // Whether the snapshot is being removed: files of it may be gone.
  bool IsGoing(const std::string& folder) const { return old_.contains(folder); }
  // The newest complete snapshot of this job; empty = none that the next may refer to.
  std::string base() const;

  // Stores the manifest, encoded in `bytes`; then the snapshot is complete.
  void Publish(const proto::SnapshotManifest& manifest, Buffer bytes);
  // Removes a snapshot that cannot be completed.
  void Remove(const std::string& folder);
  // The result of the publication; nothing = `reply` is another one. DATA_LOSS: a file to which the
  // manifest refers is gone; the next snapshot refers to none.
  std::optional<absl::Status> OnStoreReply(const Message& reply);
  // For the store, since the last call.
  std::vector<Message> TakeRequests() { return std::exchange(requests_, {}); }

 private:
  struct Complete {
    std::string folder;
    // The files of others that it needs; nothing = its manifest cannot be read.
    std::optional<FilesByFolder> references;
  };
  // A snapshot that is to be removed.
  struct Old {
    // As before, until the manifest is removed for good.
    std::optional<FilesByFolder> references = FilesByFolder();
    // The files that stay, as was asked of the store last; nothing = it must be asked.
    std::optional<std::set<std::string>> kept = std::nullopt;
  };
  // The snapshot whose manifest is being stored.
  struct Publication {
    std::string folder;
    Buffer manifest;
    FilesByFolder references;
    std::map<std::string, std::map<std::string, uint64_t>> unseen;  // sizes by folder and file
    uint64_t request = 0;  // of the manifest, or of the list of the first unseen folder
  };

  uint64_t Request(const std::string& path, proto::StoreRequest request, Buffer bytes = Buffer());
  void ListFolder(const std::string& folder);
  void OnList(const std::string& folder, const absl::Status& status,
              const proto::StoreReply& reply);
  void ReadNextManifest();
  void OnManifest(const absl::Status& status, const Message& message);
  void Advance(Publication& publication);
  // The files of the first unseen folder.
  static absl::Status CheckSeen(const Publication& publication, const proto::StoreReply& reply);
  std::optional<absl::Status> OnPublication(const absl::Status& status,
                                            const proto::StoreReply& reply);
  // Whether servers may still read shards from it.
  bool IsInUse(const std::string& folder) const;
  // The files of others that any snapshot needs which has a manifest.
  FilesByFolder Needed() const;
  // Whether a newer snapshot may need its files, and nobody knows which.
  bool IsPerhapsNeeded(const std::string& folder) const;
  void FindOld();
  void RemoveOld();
  void OnRemoved(const absl::Status& status, uint64_t request);

  size_t kept_;
  const ClusterState& state_;
  uint64_t next_request_ = 1;
  std::vector<Message> requests_;
  // Folders that are being listed, by request; "" = the store's own.
  std::map<uint64_t, std::string> listings_;
  // The request for the manifest of complete_[next_manifest_]; 0 = none.
  uint64_t reading_ = 0;
  size_t next_manifest_ = 0;
  // In growing order of id, once all are listed.
  std::vector<Complete> complete_;
  std::set<std::string> incomplete_;
  std::map<std::string, Old> old_;  // by folder, until nothing is left of it
  // Under way: the folder and what stays of it, by request.
  std::map<uint64_t, std::pair<std::string, std::set<std::string>>> removals_;
  uint64_t highest_id_ = 0;
  std::optional<Publication> publication_;  // under way
  // A file to which the newest snapshot would refer is gone.
  bool base_is_broken_ = false;
};

}  // namespace covey::scheduler
