// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/net/transport.h"
#include "proto/log.pb.h"

namespace covey::scheduler {

// The scheduler's disk: one file in the format of scheduler_log.h. DiskAppend messages go in,
// DiskDurable messages come out.
//
// Writes and syncs on the thread that calls Send, the scheduler's loop: decisions are rare, a sync
// takes milliseconds, and the actor discounts the pause when it takes longer. So the log
// needs no thread of its own. When the file would exceed `file_bytes_max` it is replaced by one
// that holds the newest record only: written beside it, synced, renamed over it. A lock keeps other
// processes out, also during a replacement: the new file is locked before it is renamed, and the
// old one until after that. After a failure the content of the file is unknown, so the next record
// replaces it, too.
//
// Not thread-safe; Send belongs to the loop, the rest comes before the loop starts.
class FileLog : public MessagePort {
 public:
  struct Options {
    std::string path;
    uint64_t file_bytes_max = 64 << 20;
  };

  // Creates the file if there is none, reads it, and cuts off a torn record. FAILED_PRECONDITION:
  // another process has it open; INVALID_ARGUMENT: not an ordinary file; DATA_LOSS: see RecoverLog;
  // UNAVAILABLE: the operating system refuses, the message says why.
  static absl::StatusOr<std::unique_ptr<FileLog>> Open(const Options& options);
  ~FileLog() override;

  // The newest record that was in the file; nothing = the file was new.
  const std::optional<proto::LogRecord>& recovered() const { return recovered_; }

  // Sets the receiver of DiskDurable messages. Before the first Send.
  void SetReceiver(std::function<void(Message)> receiver) { receiver_ = std::move(receiver); }

  // The reply's status is UNAVAILABLE, and says why, when the record may not be on the disk.
  void Send(Message message) override;

 private:
  FileLog(const Options& options, int file) : options_(options), file_(file) {}

  absl::Status Recover();
  absl::Status Write(const std::string& record);
  absl::Status Append(const std::string& record);
  absl::Status Replace(const std::string& record);
  absl::Status SyncFolder() const;

  const Options options_;
  int file_;
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
