// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/net/transport.h"
#include "proto/log.pb.h"
#include "scheduler/log/log_folder.h"

namespace covey::scheduler {

// The scheduler's disk: one file in the format of scheduler_log.h. DiskAppend messages go in,
// DiskDurable messages come out.
//
// Writes and syncs on the thread that calls Send, the scheduler's loop: decisions are rare, a sync
// takes milliseconds, and the actor discounts the pause when it takes longer. So the log
// needs no thread of its own. When the file would exceed `file_bytes_max` it is replaced by one
// that holds the newest record only: written beside it, synced, renamed over it. A lock keeps other
// processes out, also during a replacement: the new file is locked before it is renamed, and the
// old one until after that. Where the file may hold what the disk does not, the next record
// replaces it, too: after a failure, and when it is opened, because a failure may have ended the
// process before.
//
// Not thread-safe; Send belongs to the loop, the rest comes before the loop starts.
class FileLog : public MessagePort {
 public:
  static constexpr uint64_t kFileBytesMax = 64 << 20;

  // Opens the log, creates it if there is none, reads it, and makes what it has read durable,
  // without a torn record. Errors as LogFolder::OpenLog, and DATA_LOSS: see RecoverLog.
  static absl::StatusOr<std::unique_ptr<FileLog>> Open(std::unique_ptr<LogFolder> folder,
                                                       uint64_t file_bytes_max = kFileBytesMax);

  // The newest record that was in the file; nothing = the file was new.
  const std::optional<proto::LogRecord>& recovered() const { return recovered_; }

  // Sets the receiver of DiskDurable messages. Before the first Send.
  void SetReceiver(std::function<void(Message)> receiver) { receiver_ = std::move(receiver); }

  // The reply's status is UNAVAILABLE, and says why, when the record may not be on the disk.
  void Send(Message message) override;

 private:
  FileLog(std::unique_ptr<LogFolder> folder, uint64_t file_bytes_max)
      : folder_(std::move(folder)), file_bytes_max_(file_bytes_max) {}

  absl::Status Recover();
  absl::Status Write(const std::string& record);
  absl::Status Append(const std::string& record);
  absl::Status Replace(const std::string& record);
  absl::Status PutSuccessor(const std::string& record);

  const std::unique_ptr<LogFolder> folder_;
  const uint64_t file_bytes_max_;
  std::unique_ptr<LogFile> file_;
  uint64_t size_ = 0;
  std::optional<proto::LogRecord> recovered_;
  std::function<void(Message)> receiver_;
  bool has_failed_ = false;  // the newest append
};

// Reports everything as durable at once and keeps nothing: for a scheduler without a log file.
class NullLog : public MessagePort {
 public:
  void SetReceiver(std::function<void(Message)> receiver) { receiver_ = std::move(receiver); }
  void Send(Message message) override;

 private:
  std::function<void(Message)> receiver_;
};

}  // namespace covey::scheduler
