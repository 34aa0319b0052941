// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace covey::scheduler {

// An open file of a log. Its destructor closes it, and gives up its lock. Not thread-safe; blocks.
// Errors are UNAVAILABLE, and say what failed, where and why.
class LogFile {
 public:
  virtual ~LogFile() = default;

  // All its bytes, whether they are on the disk or not.
  virtual absl::StatusOr<std::string> Read() = 0;
  // Leaves nothing in it.
  virtual absl::Status Clear() = 0;
  // After an error it may hold any part of the bytes.
  virtual absl::Status Append(absl::string_view bytes) = 0;
  // After an error, bytes may be lost although Read returns them, and although a later Sync
  // succeeds: Linux takes the lost pages for written.
  virtual absl::Status Sync() = 0;
};

// What FileLog needs of the folder in which a log is, and beside it, while it is replaced, its
// successor. The methods are single steps; FileLog knows their order, and what a failure means. Not
// thread-safe; blocks. Errors as those of LogFile, unless something else is said.
class LogFolder {
 public:
  virtual ~LogFolder() = default;

  // Of the log, for users.
  virtual const std::string& path() const = 0;
  // The log, which nobody else opens until it is closed; a new one if there is none.
  // FAILED_PRECONDITION: another process has it open; INVALID_ARGUMENT: it is not an ordinary file.
  virtual absl::StatusOr<std::unique_ptr<LogFile>> OpenLog() = 0;
  // An empty file, which nobody else opens as the log either. One that a former process has left in
  // its place is emptied.
  virtual absl::StatusOr<std::unique_ptr<LogFile>> CreateSuccessor() = 0;
  // Gives the successor the name of the log, whose file has none from then on.
  virtual absl::Status RenameSuccessor() = 0;
  // Errors are of no use: the next successor takes its place.
  virtual void RemoveSuccessor() = 0;
  // Makes the names in the folder durable.
  virtual absl::Status Sync() = 0;
};

}  // namespace covey::scheduler
