// SPDX-License-Identifier: Apache-2.0
#include "scheduler/log/testing/memory_log_folder.h"

#include <cstdint>
#include <span>
#include <utility>

#include "common/base/status_macros.h"

namespace covey::scheduler {
namespace {

constexpr char kSuccessor[] = "log.new";

// As a log says it.
absl::Status Unavailable(const absl::Status& status) {
  return status.ok() ? status : absl::UnavailableError(status.message());
}

}  // namespace

class MemoryLogFolder::File : public LogFile {
 public:
  File(MemoryFolder& folder, std::string name) : folder_(folder), name_(std::move(name)) {}
  ~File() override { folder_.CloseFile(name_).IgnoreError(); }

  absl::StatusOr<std::string> Read() override {
    const absl::StatusOr<FolderEntry> entry = folder_.Look(name_);
    COVEY_RETURN_IF_ERROR(Unavailable(entry.status()));
    std::string bytes(entry->bytes, '\0');
    COVEY_RETURN_IF_ERROR(Unavailable(folder_.ReadAll(
        name_, 0, std::span(reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()))));
    return bytes;
  }
  absl::Status Clear() override { return Unavailable(folder_.EmptyFile(name_)); }
  absl::Status Append(absl::string_view bytes) override {
    while (!bytes.empty()) {
      const absl::StatusOr<size_t> written = folder_.WriteSome(
          name_, std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
      COVEY_RETURN_IF_ERROR(Unavailable(written.status()));
      bytes.remove_prefix(*written);
    }
    return absl::OkStatus();
  }
  absl::Status Sync() override { return Unavailable(folder_.SyncFile(name_)); }

  void Rename(std::string name) { name_ = std::move(name); }

 private:
  MemoryFolder& folder_;
  std::string name_;
};

absl::StatusOr<std::unique_ptr<LogFile>> MemoryLogFolder::OpenLog() {
  absl::Status opened = folder_.OpenFile(path_);
  if (absl::IsNotFound(opened)) opened = folder_.CreateFile(path_);
  if (!opened.ok()) return Unavailable(opened);
  auto file = std::make_unique<File>(folder_, path_);
  log_ = file.get();
  return file;
}

absl::StatusOr<std::unique_ptr<LogFile>> MemoryLogFolder::CreateSuccessor() {
  absl::Status opened = folder_.CreateFile(kSuccessor);
  if (absl::IsAlreadyExists(opened)) {
    opened = folder_.OpenFile(kSuccessor);
    if (opened.ok()) opened = folder_.EmptyFile(kSuccessor);
  }
  if (!opened.ok()) return Unavailable(opened);
  auto file = std::make_unique<File>(folder_, kSuccessor);
  successor_ = file.get();
  return file;
}

absl::Status MemoryLogFolder::RenameSuccessor() {
  COVEY_RETURN_IF_ERROR(Unavailable(folder_.Rename(kSuccessor, path_)));
  log_->Rename("");
  successor_->Rename(path_);
  log_ = std::exchange(successor_, nullptr);
  return absl::OkStatus();
}

absl::Status MemoryLogFolder::Sync() { return Unavailable(folder_.SyncFolder("")); }

void MemoryLogFolder::RemoveSuccessor() { folder_.RemoveFile(kSuccessor).IgnoreError(); }

}  // namespace covey::scheduler
