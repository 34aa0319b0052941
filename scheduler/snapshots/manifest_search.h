// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/net/message.h"
#include "common/snapshot/manifest.h"
#include "proto/process.pb.h"
#include "proto/snapshot.pb.h"

namespace covey::scheduler {

// Reads the manifest of the snapshot that a user names from the store: of a folder; or of the
// newest complete one that is meant, for which it tries folders from the newest on.
//
//   Begin ─▶ list of the store, unless a folder is named ─▶ manifests, one at a time ─▶ the result
//
// Used by TableRestores. Actor-confined, deterministic. Memory: one manifest.
class ManifestSearch {
 public:
  using Result = std::optional<absl::StatusOr<proto::SnapshotManifest>>;

  // Ends the search before, if there is one. INVALID_ARGUMENT: no snapshot is called so.
  absl::Status Begin(absl::string_view called);
  // Ends the search without a result.
  void Cancel() { awaited_ = 0; }
  // Whether `reply` is one to this search; then `result` may be set. NOT_FOUND: the store holds no
  // such complete snapshot. DATA_LOSS: the manifest is damaged. Others as the store.
  bool OnStoreReply(const Message& reply, Result& result);
  // For the store, since the last call.
  std::vector<Message> TakeRequests() { return std::exchange(requests_, {}); }

 private:
  void Request(const std::string& path, proto::StoreRequest request);
  void ReadNext();
  void OnList(const proto::StoreReply& reply);
  absl::StatusOr<proto::SnapshotManifest> Decode(const Message& reply) const;

  SnapshotChoice choice_;
  // The next one last.
  std::vector<std::string> folders_;
  // Ids apart from those of StoredSnapshots.
  uint64_t next_request_ = uint64_t{1} << 62;
  uint64_t awaited_ = 0;  // 0 = none
  bool lists_ = false;    // what is awaited is the list
  std::vector<Message> requests_;
};

}  // namespace covey::scheduler
