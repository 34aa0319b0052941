// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "scheduler/log/log_folder.h"

namespace covey::scheduler {

// A folder of the operating system. The successor of the log PATH is PATH.new. Where PATH is a
// link, both are where it leads. Locks are flock's, and belong to open files: they end with their
// process.
class OsLogFolder : public LogFolder {
 public:
  explicit OsLogFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const override { return path_; }
  absl::StatusOr<std::unique_ptr<LogFile>> OpenLog() override;
  absl::StatusOr<std::unique_ptr<LogFile>> CreateSuccessor() override;
  absl::Status RenameSuccessor() override;
  void RemoveSuccessor() override;
  absl::Status Sync() override;

 private:
  const std::string path_;
  // Without links; empty before OpenLog.
  std::string log_;
  std::string successor_;
};

}  // namespace covey::scheduler
