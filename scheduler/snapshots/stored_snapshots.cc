// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/stored_snapshots.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/snapshot/manifest.h"

namespace covey::scheduler {

uint64_t StoredSnapshots::Request(proto::StoreRequest request, Buffer bytes) {
  Message& message = requests_.emplace_back();
  message.set_to({kSchedulerNode, kStoreLoop});
  request.set_id(next_request_++);
  *message.envelope.mutable_store_request() = std::move(request);
  if (!bytes.empty()) message.frames.push_back(std::move(bytes));
  return next_request_ - 1;
}

void StoredSnapshots::List() { ListFolder(""); }

void StoredSnapshots::ListFolder(const std::string& folder) {
  proto::StoreRequest request;
  request.set_path(folder);
  request.mutable_list();
  listings_[Request(std::move(request))] = folder;
}

void StoredSnapshots::OnList(const std::string& folder, const proto::StoreReply& reply) {
  for (const proto::StoreEntry& entry : reply.entries()) {
    if (folder.empty() && entry.is_folder() && ParseSnapshotFolderName(entry.name())) {
      ListFolder(entry.name());
    }
  }
  if (!folder.empty()) {
    const bool is_complete =
        std::any_of(reply.entries().begin(), reply.entries().end(),
                    [](const auto& entry) { return entry.name() == kManifestName; });
    (is_complete ? complete_ : incomplete_).push_back(folder);
    highest_id_ = std::max(highest_id_, ParseSnapshotFolderName(folder)->id);
  }
  if (listings_.empty()) OnListed();
}

void StoredSnapshots::OnListed() {
  const auto by_id = [](const std::string& a, const std::string& b) {
    return ParseSnapshotFolderName(a)->id < ParseSnapshotFolderName(b)->id;
  };
  std::sort(complete_.begin(), complete_.end(), by_id);
  for (const std::string& folder : incomplete_) {
    if (!complete_.empty() && by_id(folder, complete_.back())) Remove(folder);
  }
  incomplete_.clear();
  RemoveOld();
}

void StoredSnapshots::Publish(const std::string& folder, Buffer manifest) {
  proto::StoreRequest request;
  request.set_path(absl::StrCat(folder, "/", kManifestName));
  request.mutable_publish();
  publication_ = Request(std::move(request), std::move(manifest));
  published_ = folder;
}

void StoredSnapshots::Remove(const std::string& folder) {
  proto::StoreRequest request;
  request.set_path(folder);
  request.mutable_remove()->set_first(kManifestName);
  Request(std::move(request));
}

std::optional<absl::Status> StoredSnapshots::OnStoreReply(const Message& message) {
  const proto::StoreReply& reply = message.envelope.store_reply();
  const absl::Status status = StatusOf(message);
  // A snapshot that failed early has no folder to be removed.
  if (!status.ok() && !absl::IsNotFound(status)) {
    LogWarning("snapshot_store", {{"reason", status.message()}});
  }
  if (const auto listed = listings_.find(reply.id()); listed != listings_.end()) {
    const std::string folder = listed->second;
    listings_.erase(listed);
    OnList(folder, reply);
    return std::nullopt;
  }
  if (publication_ == 0 || reply.id() != publication_) return std::nullopt;
  publication_ = 0;
  if (status.ok()) {
    complete_.push_back(published_);
    RemoveOld();
  }
  return status;
}

bool StoredSnapshots::IsInUse(const std::string& folder) const {
  const proto::LogRecord& record = state_.record();
  if (folder == record.restore().folder() || folder == record.initial_values().folder()) {
    return true;
  }
  for (const proto::Table& table : state_.view().tables()) {
    if (table.origin().folder() == folder) return true;
    for (const proto::Shard& shard : table.shards()) {
      if (shard.origin() == folder) return true;
    }
  }
  return false;
}

void StoredSnapshots::RemoveOld() {
  size_t surplus = complete_.size() - std::min(complete_.size(), kept_);
  std::erase_if(complete_, [&](const std::string& folder) {
    if (surplus == 0) return false;
    --surplus;
    if (IsInUse(folder)) return false;
    Remove(folder);
    return true;
  });
}

}  // namespace covey::scheduler
