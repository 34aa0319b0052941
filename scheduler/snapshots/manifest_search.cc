// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/manifest_search.h"

#include <algorithm>
#include <tuple>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "common/cluster/ids.h"

namespace covey::scheduler {

absl::Status ManifestSearch::Begin(absl::string_view called) {
  COVEY_ASSIGN_OR_RETURN(choice_, SnapshotChoice::Parse(called));
  folders_.clear();
  lists_ = choice_.folder.empty();
  if (lists_) {
    proto::StoreRequest request;
    request.mutable_list();
    Request("", std::move(request));
  } else {
    folders_ = {choice_.folder};
    ReadNext();
  }
  return absl::OkStatus();
}

void ManifestSearch::Request(const std::string& path, proto::StoreRequest request) {
  Message& message = requests_.emplace_back();
  message.set_to({kSchedulerNode, kStoreLoop});
  awaited_ = next_request_++;
  request.set_id(awaited_);
  request.set_path(path);
  *message.envelope.mutable_store_request() = std::move(request);
}

void ManifestSearch::ReadNext() {
  proto::StoreRequest request;
  request.mutable_read();
  Request(ManifestPath(folders_.back()), std::move(request));
}

void ManifestSearch::OnList(const proto::StoreReply& reply) {
  std::vector<SnapshotName> names;
  for (const proto::StoreEntry& entry : reply.entries()) {
    const std::optional<SnapshotName> name = ParseSnapshotFolderName(entry.name());
    if (entry.is_folder() && name && choice_.Admits(*name)) names.push_back(*name);
  }
  std::sort(names.begin(), names.end(), [](const SnapshotName& a, const SnapshotName& b) {
    return std::tie(a.id, a.epoch) < std::tie(b.id, b.epoch);
  });
  for (const SnapshotName& name : names) {
    folders_.push_back(SnapshotFolderName(name.id, name.epoch));
  }
}

absl::StatusOr<proto::SnapshotManifest> ManifestSearch::Decode(const Message& reply) const {
  const Buffer bytes = reply.frames.empty() ? Buffer() : reply.frames[0];
  return DecodeManifestOf(folders_.back(), bytes.bytes());
}

bool ManifestSearch::OnStoreReply(const Message& reply, Result& result) {
  if (awaited_ == 0 || reply.envelope.store_reply().id() != awaited_) return false;
  awaited_ = 0;
  const absl::Status status = StatusOf(reply);
  if (lists_ && status.ok()) {
    lists_ = false;
    OnList(reply.envelope.store_reply());
  } else if (!lists_ && absl::IsNotFound(status)) {
    folders_.pop_back();  // not complete
  } else {
    result = status.ok() ? Decode(reply) : status;
    return true;
  }
  if (folders_.empty()) {
    result = choice_.NotFound();
  } else {
    ReadNext();
  }
  return true;
}

}  // namespace covey::scheduler
