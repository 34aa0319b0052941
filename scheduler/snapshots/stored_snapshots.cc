// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/stored_snapshots.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/planted_bug.h"
#include "common/snapshot/manifest.h"

namespace covey::scheduler {
namespace {

uint64_t IdOf(const std::string& folder) { return ParseSnapshotFolderName(folder)->id; }

}  // namespace

uint64_t StoredSnapshots::Request(const std::string& path, proto::StoreRequest request,
                                  Buffer bytes) {
  Message& message = requests_.emplace_back();
  message.set_to({kSchedulerNode, kStoreLoop});
  request.set_id(next_request_++);
  request.set_path(path);
  *message.envelope.mutable_store_request() = std::move(request);
  if (!bytes.empty()) message.frames.push_back(std::move(bytes));
  return next_request_ - 1;
}

void StoredSnapshots::List() { ListFolder(""); }

void StoredSnapshots::ListFolder(const std::string& folder) {
  proto::StoreRequest request;
  request.mutable_list();
  listings_[Request(folder, std::move(request))] = folder;
}

void StoredSnapshots::OnList(const std::string& folder, const absl::Status& status,
                             const proto::StoreReply& reply) {
  for (const proto::StoreEntry& entry : reply.entries()) {
    if (folder.empty() && entry.is_folder() && ParseSnapshotFolderName(entry.name())) {
      ListFolder(entry.name());
    }
  }
  if (!folder.empty()) {
    // Of a folder that cannot be listed, the manifest tells.
    const bool is_complete =
        !status.ok() ||
        std::any_of(reply.entries().begin(), reply.entries().end(),
                    [](const auto& entry) { return entry.name() == kManifestName; });
    if (is_complete) {
      complete_.push_back({.folder = folder, .references = {}});
    } else {
      incomplete_.insert(folder);
    }
    highest_id_ = std::max(highest_id_, IdOf(folder));
  }
  if (!listings_.empty()) return;
  std::sort(complete_.begin(), complete_.end(),
            [](const Complete& a, const Complete& b) { return IdOf(a.folder) < IdOf(b.folder); });
  ReadNextManifest();
}

void StoredSnapshots::ReadNextManifest() {
  if (next_manifest_ == complete_.size()) {
    FindOld();
    return RemoveOld();
  }
  proto::StoreRequest request;
  request.mutable_read();
  reading_ = Request(ManifestPath(complete_[next_manifest_].folder), std::move(request));
}

void StoredSnapshots::OnManifest(const absl::Status& status, const Message& message) {
  reading_ = 0;
  Complete& complete = complete_[next_manifest_];
  if (absl::IsNotFound(status)) {
    incomplete_.insert(complete.folder);
    complete_.erase(complete_.begin() + static_cast<std::ptrdiff_t>(next_manifest_));
    return ReadNextManifest();
  }
  ++next_manifest_;
  const Buffer bytes = message.frames.empty() ? Buffer() : message.frames[0];
  absl::StatusOr<proto::SnapshotManifest> manifest =
      status.ok() ? DecodeManifestOf(complete.folder, bytes.bytes()) : status;
  if (manifest.ok()) {
    complete.references = ReferencesOf(*manifest);
  } else {
    LogWarning("snapshot_unreadable", {{"manifest", ManifestPath(complete.folder)},
                                       {"reason", manifest.status().message()},
                                       {"kept", "everything older, which it may need"}});
  }
  ReadNextManifest();
}

std::string StoredSnapshots::base() const {
  const std::string& newest = state_.record().newest_snapshot().folder();
  const bool is_there = std::any_of(complete_.begin(), complete_.end(),
                                    [&](const Complete& known) { return known.folder == newest; });
  return is_there && !base_is_broken_ ? newest : "";
}

void StoredSnapshots::Publish(const proto::SnapshotManifest& manifest, Buffer bytes) {
  publication_ = Publication{
      .folder = manifest.folder(),
      .manifest = std::move(bytes),
      .references = ReferencesOf(manifest),
  };
  Publication& publication = *publication_;
  for (const proto::SnapshotFile& file : manifest.files()) {
    if (!file.folder().empty()) publication.unseen[file.folder()][file.name()] = file.bytes();
  }
  Advance(publication);
}

void StoredSnapshots::Advance(Publication& publication) {
  proto::StoreRequest request;
  if (!publication.unseen.empty()) {
    request.mutable_list();
    publication.request = Request(publication.unseen.begin()->first, std::move(request));
    return;
  }
  request.mutable_publish();
  publication.request =
      Request(ManifestPath(publication.folder), std::move(request), publication.manifest);
}

absl::Status StoredSnapshots::CheckSeen(const Publication& publication,
                                        const proto::StoreReply& reply) {
  const auto& [folder, files] = *publication.unseen.begin();
  std::map<std::string, uint64_t> seen;
  for (const proto::StoreEntry& entry : reply.entries()) seen[entry.name()] = entry.bytes();
  for (const auto& [name, bytes] : files) {
    const auto found = seen.find(name);
    if (found != seen.end() && found->second == bytes) continue;
    return absl::DataLossError(
        absl::StrCat("it refers to ", folder, "/", name,
                     ", which is gone or cut off; the next snapshot will be stored as a whole"));
  }
  return absl::OkStatus();
}

std::optional<absl::Status> StoredSnapshots::OnPublication(const absl::Status& status,
                                                           const proto::StoreReply& reply) {
  Publication& publication = *publication_;
  if (!publication.unseen.empty()) {
    // Without the folder none of the files is there.
    const absl::Status seen =
        status.ok() || absl::IsNotFound(status) ? CheckSeen(publication, reply) : status;
    if (seen.ok()) {
      publication.unseen.erase(publication.unseen.begin());
      Advance(publication);
      return std::nullopt;
    }
    base_is_broken_ = absl::IsDataLoss(seen);
    publication_.reset();
    return seen;
  }
  if (status.ok()) {
    base_is_broken_ = false;
    complete_.push_back(
        {.folder = std::move(publication.folder), .references = std::move(publication.references)});
  }
  publication_.reset();
  FindOld();
  RemoveOld();
  return status;
}

void StoredSnapshots::Remove(const std::string& folder) {
  old_[folder] = {};
  RemoveOld();
}

std::optional<absl::Status> StoredSnapshots::OnStoreReply(const Message& message) {
  const proto::StoreReply& reply = message.envelope.store_reply();
  const absl::Status status = StatusOf(message);
  // A snapshot that failed early has no folder to be removed.
  const bool is_failure = !status.ok() && !absl::IsNotFound(status);
  if (is_failure) LogWarning("snapshot_store", {{"reason", status.message()}});
  if (const auto listed = listings_.find(reply.id()); listed != listings_.end()) {
    const std::string folder = listed->second;
    listings_.erase(listed);
    OnList(folder, status, reply);
    return std::nullopt;
  }
  if (removals_.contains(reply.id())) {
    OnRemoved(is_failure ? status : absl::OkStatus(), reply.id());
    return std::nullopt;
  }
  if (reading_ != 0 && reply.id() == reading_) {
    OnManifest(status, message);
    return std::nullopt;
  }
  if (!publication_ || reply.id() != publication_->request) return std::nullopt;
  return OnPublication(status, reply);
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

FilesByFolder StoredSnapshots::Needed() const {
  FilesByFolder needed;
  for (const Complete& known : complete_) {
    if (known.references) AddFiles(*known.references, needed);
  }
  for (const auto& [folder, old] : old_) {
    if (old.references && !Planted(PlantedBug::kOldManifestsNeedNothing)) {
      AddFiles(*old.references, needed);
    }
  }
  return needed;
}

bool StoredSnapshots::IsPerhapsNeeded(const std::string& folder) const {
  const auto is_newer = [&](const std::string& other) { return IdOf(other) > IdOf(folder); };
  return std::any_of(
             complete_.begin(), complete_.end(),
             [&](const Complete& known) { return !known.references && is_newer(known.folder); }) ||
         std::any_of(old_.begin(), old_.end(), [&](const auto& old) {
           return !old.second.references && is_newer(old.first);
         });
}

void StoredSnapshots::FindOld() {
  size_t surplus = complete_.size() - std::min(complete_.size(), kept_);
  std::erase_if(complete_, [&](const Complete& known) {
    if (surplus == 0) return false;
    --surplus;
    if (IsInUse(known.folder)) return false;
    old_[known.folder].references = known.references;
    return true;
  });
  std::erase_if(incomplete_, [&](const std::string& folder) {
    if (complete_.empty() || IdOf(folder) >= IdOf(complete_.back().folder)) return false;
    old_[folder] = {};
    return true;
  });
}

void StoredSnapshots::RemoveOld() {
  const FilesByFolder needed = Needed();
  for (auto& [folder, old] : old_) {
    const std::set<std::string> keep = NeededIn(folder, needed);
    if (IsPerhapsNeeded(folder) || old.kept == keep) continue;
    old.kept = keep;
    proto::StoreRequest request;
    proto::StoreRemove& remove = *request.mutable_remove();
    remove.set_first(kManifestName);
    for (const std::string& name : keep) {
      if (!Planted(PlantedBug::kRemovesNeededFiles)) remove.add_keep(name);
    }
    removals_[Request(folder, std::move(request))] = {folder, keep};
  }
}

void StoredSnapshots::OnRemoved(const absl::Status& status, uint64_t request) {
  const auto [folder, kept] = removals_.extract(request).mapped();
  const auto old = old_.find(folder);
  if (old == old_.end()) return;
  if (!status.ok()) {
    // Some of it may be left: it is removed again when others are.
    old->second.kept = std::nullopt;
    return;
  }
  if (kept.empty()) {
    old_.erase(old);
  } else {
    old->second.references = FilesByFolder();
  }
  // What only this snapshot needed goes now.
  RemoveOld();
}

}  // namespace covey::scheduler
