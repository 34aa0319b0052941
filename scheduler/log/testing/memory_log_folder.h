// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "common/store/testing/memory_folder.h"
#include "scheduler/log/log_folder.h"

namespace covey::scheduler {

// The folder of a log on a disk in memory, for tests: MemoryFolder says what fails, and what a
// crash leaves. Without locks. `folder` outlives it and its files.
class MemoryLogFolder : public LogFolder {
 public:
  explicit MemoryLogFolder(MemoryFolder& folder) : folder_(folder) {}

  const std::string& path() const override { return path_; }
  absl::StatusOr<std::unique_ptr<LogFile>> OpenLog() override;
  absl::StatusOr<std::unique_ptr<LogFile>> CreateSuccessor() override;
  absl::Status RenameSuccessor() override;
  void RemoveSuccessor() override;
  absl::Status Sync() override;

 private:
  class File;

  MemoryFolder& folder_;
  const std::string path_ = "log";
  // Files that are open.
  File* log_ = nullptr;
  File* successor_ = nullptr;
};

}  // namespace covey::scheduler
