// SPDX-License-Identifier: Apache-2.0
#include "common/store/testing/memory_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace covey {

void MemoryFolder::Apply(const Change& change, State& state) {
  Node& node = state.nodes[change.node];
  if (change.is_emptied) return node.bytes.clear();
  if (!change.bytes.empty()) {
    const size_t end = change.offset + change.bytes.size();
    if (node.bytes.size() < end) node.bytes.resize(end);
    node.bytes.replace(change.offset, change.bytes.size(), change.bytes);
    return;
  }
  node.is_folder = true;
  if (!change.removed.empty()) node.names.erase(change.removed);
  if (!change.added.empty()) {
    node.names[change.added] = change.added_node;
    state.nodes[change.added_node].is_folder = change.added_is_folder;
  }
}

const MemoryFolder::Node* MemoryFolder::Find(const State& state, const std::string& path,
                                             int* number) {
  int at = 0;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const Node& folder = state.nodes.at(at);
    const auto name = folder.names.find(path.substr(begin, end - begin));
    if (name == folder.names.end()) return nullptr;
    at = name->second;
    begin = end + 1;
  }
  if (number != nullptr) *number = at;
  return &state.nodes.at(at);
}

absl::StatusOr<int> MemoryFolder::FolderNode(const std::string& path, std::string* name) const {
  const size_t slash = path.find('/');
  *name = slash == std::string::npos ? path : path.substr(slash + 1);
  int number = 0;
  const Node* folder =
      Find(volatile_, slash == std::string::npos ? "" : path.substr(0, slash), &number);
  if (folder == nullptr || !folder->is_folder) return SystemError("open", path, ENOENT);
  return number;
}

absl::Status MemoryFolder::Begin(absl::string_view action, const std::string& path) {
  ++operations_;
  const auto planned = faults_.find(operations_);
  next_write_is_short_ = planned != faults_.end() && planned->second == Fault::kShortWrite;
  if (planned != faults_.end() && planned->second == Fault::kPowerCut) power_is_cut_ = true;
  if (power_is_cut_) return SystemError(action, path, ENODEV);
  if (planned == faults_.end() || next_write_is_short_) return absl::OkStatus();
  return SystemError(action, path, planned->second == Fault::kNoSpace ? ENOSPC : EIO);
}

void MemoryFolder::Record(Change change) {
  Apply(change, volatile_);
  pending_.push_back(std::move(change));
}

void MemoryFolder::Settle(int node) {
  std::erase_if(pending_, [&](const Change& change) {
    if (change.node == node) Apply(change, durable_);
    return change.node == node;
  });
}

absl::Status MemoryFolder::AddNode(const std::string& path, bool is_folder) {
  std::string name;
  COVEY_ASSIGN_OR_RETURN(const int folder, FolderNode(path, &name));
  if (volatile_.nodes[folder].names.contains(name)) return SystemError("create", path, EEXIST);
  Record({.node = folder, .added = name, .added_node = next_node_++, .added_is_folder = is_folder});
  return absl::OkStatus();
}

absl::Status MemoryFolder::MakeFolder(const std::string& path) {
  COVEY_RETURN_IF_ERROR(Begin("create the folder", path));
  const absl::Status status = AddNode(path, /*is_folder=*/true);
  return absl::IsAlreadyExists(status) ? absl::OkStatus() : status;
}

absl::Status MemoryFolder::CreateFile(const std::string& path) {
  COVEY_RETURN_IF_ERROR(Begin("create", path));
  COVEY_RETURN_IF_ERROR(AddNode(path, /*is_folder=*/false));
  Find(volatile_, path, &open_[path]);
  return absl::OkStatus();
}

absl::Status MemoryFolder::OpenFile(const std::string& path) {
  COVEY_RETURN_IF_ERROR(Begin("open", path));
  int node = 0;
  if (Find(volatile_, path, &node) == nullptr) return SystemError("open", path, ENOENT);
  open_[path] = node;
  return absl::OkStatus();
}

absl::Status MemoryFolder::EmptyFile(const std::string& path) {
  COVEY_RETURN_IF_ERROR(Begin("empty", path));
  Record({.node = open_.at(path), .is_emptied = true});
  return absl::OkStatus();
}

void MemoryFolder::EndProcess() {
  open_.clear();
  faults_.clear();
  power_is_cut_ = false;
}

absl::StatusOr<size_t> MemoryFolder::WriteSome(const std::string& path, Bytes bytes) {
  COVEY_RETURN_IF_ERROR(Begin("write to", path));
  const size_t size = next_write_is_short_ ? std::max<size_t>(1, bytes.size() / 2) : bytes.size();
  const int node = open_.at(path);
  Record({.node = node,
          .offset = volatile_.nodes[node].bytes.size(),
          .bytes = std::string(reinterpret_cast<const char*>(bytes.data()), size)});
  return size;
}

absl::Status MemoryFolder::SyncFile(const std::string& path) {
  const int node = open_.at(path);
  const absl::Status status = Begin("sync", path);
  if (status.ok()) {
    Settle(node);
  } else if (!power_is_cut_) {
    // As Linux does: the pages count as written, so a second sync succeeds without them.
    std::erase_if(pending_, [node](const Change& change) { return change.node == node; });
  }
  return status;
}

absl::Status MemoryFolder::CloseFile(const std::string& path) {
  if (open_.erase(path) == 0) return absl::OkStatus();
  return Begin("close", path);
}

absl::Status MemoryFolder::SyncFolder(const std::string& path) {
  COVEY_RETURN_IF_ERROR(Begin("sync the folder", path));
  int node = 0;
  if (Find(volatile_, path, &node) == nullptr) return SystemError("sync the folder", path, ENOENT);
  if (lie_ != Lie::kForgetsFolderSyncs) Settle(node);
  return absl::OkStatus();
}

absl::Status MemoryFolder::Rename(const std::string& from, const std::string& to) {
  COVEY_RETURN_IF_ERROR(Begin("rename", from));
  int node = 0;
  const Node* file = Find(volatile_, from, &node);
  if (file == nullptr) return SystemError("rename", from, ENOENT);
  std::string removed;
  std::string added;
  COVEY_ASSIGN_OR_RETURN(const int folder, FolderNode(from, &removed));
  COVEY_RETURN_IF_ERROR(FolderNode(to, &added).status());
  Record({.node = folder,
          .removed = removed,
          .added = added,
          .added_node = node,
          .added_is_folder = file->is_folder});
  if (auto open = open_.extract(from); !open.empty()) {
    open_.erase(to);
    open.key() = to;
    open_.insert(std::move(open));
  }
  return absl::OkStatus();
}

absl::Status MemoryFolder::Drop(const std::string& path, bool is_folder) {
  COVEY_RETURN_IF_ERROR(Begin("remove", path));
  const Node* node = Find(volatile_, path, nullptr);
  if (node == nullptr) return SystemError("remove", path, ENOENT);
  if (node->is_folder != is_folder)
    return SystemError("remove", path, is_folder ? ENOTDIR : EISDIR);
  if (is_folder && !node->names.empty()) return SystemError("remove", path, ENOTEMPTY);
  std::string name;
  COVEY_ASSIGN_OR_RETURN(const int folder, FolderNode(path, &name));
  Record({.node = folder, .removed = name});
  return absl::OkStatus();
}

absl::Status MemoryFolder::RemoveFile(const std::string& path) {
  return Drop(path, /*is_folder=*/false);
}

absl::Status MemoryFolder::RemoveFolder(const std::string& path) {
  return Drop(path, /*is_folder=*/true);
}

absl::StatusOr<FolderEntry> MemoryFolder::Look(const std::string& path) {
  COVEY_RETURN_IF_ERROR(Begin("open", path));
  const Node* node = Find(volatile_, path, nullptr);
  if (node == nullptr) return SystemError("open", path, ENOENT);
  return FolderEntry{.name = {}, .is_folder = node->is_folder, .bytes = node->bytes.size()};
}

absl::Status MemoryFolder::ReadAll(const std::string& path, uint64_t offset,
                                   std::span<uint8_t> bytes) {
  COVEY_RETURN_IF_ERROR(Begin("read", path));
  const Node* node = Find(volatile_, path, nullptr);
  COVEY_CHECK(node != nullptr && offset + bytes.size() <= node->bytes.size());
  std::memcpy(bytes.data(), node->bytes.data() + offset, bytes.size());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<FolderEntry>> MemoryFolder::Entries(const std::string& path) {
  COVEY_RETURN_IF_ERROR(Begin("read the folder", path));
  const Node* folder = Find(volatile_, path, nullptr);
  if (folder == nullptr || !folder->is_folder) return SystemError("open", path, ENOENT);
  std::vector<FolderEntry> entries;
  for (const auto& [name, number] : folder->names) {
    const Node& node = volatile_.nodes.at(number);
    entries.push_back({.name = name, .is_folder = node.is_folder, .bytes = node.bytes.size()});
  }
  return entries;
}

std::unique_ptr<MemoryFolder> MemoryFolder::Crashed(const std::vector<Change>& kept) const {
  auto crashed = std::make_unique<MemoryFolder>(lie_);
  crashed->durable_ = durable_;
  for (const Change& change : kept) Apply(change, crashed->durable_);
  crashed->volatile_ = crashed->durable_;
  crashed->next_node_ = next_node_;
  return crashed;
}

std::unique_ptr<MemoryFolder> MemoryFolder::CrashState(
    absl::FunctionRef<uint64_t(uint64_t)> draw) const {
  const uint64_t kind = draw(4);
  if (kind == 0) return Crashed({});
  if (kind == 1) return Crashed(pending_);
  std::vector<Change> kept;
  for (const Change& change : pending_) {
    if (draw(2) == 0) continue;
    kept.push_back(change);
    std::string& bytes = kept.back().bytes;
    if (!bytes.empty() && draw(4) == 0) bytes.resize(1 + draw(bytes.size()));
  }
  return Crashed(kept);
}

void MemoryFolder::ForEachCrashState(
    absl::FunctionRef<void(MemoryFolder& crashed, const std::string& state)> visit) const {
  const auto crash = [&](const std::string& name, const std::vector<Change>& kept) {
    visit(*Crashed(kept), name);
  };
  crash("all is lost", {});
  crash("all is kept", pending_);
  for (size_t i = 0; i < pending_.size(); ++i) {
    std::vector<Change> others = pending_;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    crash(absl::StrCat("change ", i, " is lost"), others);
    crash(absl::StrCat("change ", i, " alone is kept"), {pending_[i]});
  }
  for (size_t i = pending_.size(); i-- > 0;) {
    const size_t size = pending_[i].bytes.size();
    if (size == 0) continue;
    for (const size_t kept : {size_t{1}, size / 2, size - 1}) {
      std::vector<Change> torn = pending_;
      torn[i].bytes.resize(std::max<size_t>(1, kept));
      crash(absl::StrCat("change ", i, " is torn after ", kept, " bytes"), torn);
    }
    break;
  }
}

std::string& MemoryFolder::BytesOf(const std::string& path) {
  int node = 0;
  COVEY_CHECK(Find(volatile_, path, &node) != nullptr);
  return volatile_.nodes[node].bytes;
}

void MemoryFolder::AddFile(const std::string& path, std::string bytes) {
  if (const size_t slash = path.find('/'); slash != std::string::npos) {
    AddNode(path.substr(0, slash), /*is_folder=*/true).IgnoreError();
  }
  COVEY_CHECK(AddNode(path, /*is_folder=*/false).ok());
  BytesOf(path) = std::move(bytes);
  durable_ = volatile_;
  pending_.clear();
}

}  // namespace covey
