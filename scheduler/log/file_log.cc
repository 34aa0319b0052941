// SPDX-License-Identifier: Apache-2.0
#include "scheduler/log/file_log.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "scheduler/log/scheduler_log.h"

namespace covey::scheduler {
namespace {

absl::Status SystemError(absl::string_view action, const std::string& path) {
  return absl::UnavailableError(absl::StrCat("cannot ", action, " the scheduler log ", path, ": ",
                                             strerrordesc_np(errno),
                                             "; check the folder, its permissions and free space"));
}

// FAILED_PRECONDITION: another process has the lock, or has put another file at `path` since this
// one was opened; the lock of a file that is not at the path keeps nobody out.
absl::Status Lock(int file, const std::string& path) {
  const bool locked = flock(file, LOCK_EX | LOCK_NB) == 0;
  if (!locked && errno != EWOULDBLOCK) return SystemError("lock", path);
  struct stat ours;
  struct stat at_path;
  if (locked && fstat(file, &ours) == 0 && stat(path.c_str(), &at_path) == 0 &&
      ours.st_ino == at_path.st_ino && ours.st_dev == at_path.st_dev) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the scheduler log ", path,
                   " is in use by another scheduler: stop that one or name another file"));
}

absl::Status WriteAll(int file, absl::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError("write", path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

// Locks an empty file and makes it a log of one record, on the disk.
absl::Status WriteFirst(int file, absl::string_view record, const std::string& path) {
  COVEY_RETURN_IF_ERROR(Lock(file, path));
  COVEY_RETURN_IF_ERROR(WriteAll(file, record, path));
  return fsync(file) == 0 ? absl::OkStatus() : SystemError("sync", path);
}

absl::StatusOr<std::string> ReadAll(int file, const std::string& path) {
  std::string bytes;
  char piece[64 << 10];
  while (true) {
    const ssize_t count = read(file, piece, sizeof(piece));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError("read", path);
    if (count == 0) return bytes;
    bytes.append(piece, static_cast<size_t>(count));
  }
}

// The disk's reply to the scheduler's loop.
Message DurableReply(const Message& append) {
  Message reply = MakeReply(append);
  reply.envelope.mutable_header()->set_node(kSchedulerNode.value());
  reply.envelope.mutable_disk_durable()->set_index(append.envelope.disk_append().index());
  return reply;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileLog>> FileLog::Open(const Options& options) {
  const int file = open(options.path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return SystemError("open", options.path);
  auto log = std::unique_ptr<FileLog>(new FileLog(options, file));
  struct stat status;
  if (fstat(file, &status) != 0) return SystemError("look at", options.path);
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat("the scheduler log ", options.path,
                                                   " is a device or pipe: name an ordinary file"));
  }
  COVEY_RETURN_IF_ERROR(Lock(file, options.path));
  COVEY_RETURN_IF_ERROR(log->Recover());
  return log;
}

FileLog::~FileLog() { close(file_); }

absl::Status FileLog::Recover() {
  COVEY_ASSIGN_OR_RETURN(const std::string bytes, ReadAll(file_, options_.path));
  absl::StatusOr<RecoveredLog> log =
      RecoverLog({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  if (!log.ok()) {
    return Annotate(absl::StrCat("the scheduler log ", options_.path), log.status());
  }
  size_ = log->intact_bytes;
  recovered_ = std::move(log->newest);
  if (size_ < bytes.size() && ftruncate(file_, static_cast<off_t>(size_)) != 0) {
    return SystemError("cut a torn record off", options_.path);
  }
  if (fsync(file_) != 0) return SystemError("sync", options_.path);
  return SyncFolder();
}

absl::Status FileLog::SyncFolder() const {
  const size_t slash = options_.path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : options_.path.substr(0, slash + 1);
  const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return SystemError("open the folder of", options_.path);
  const bool synced = fsync(file) == 0;
  const absl::Status status =
      synced ? absl::OkStatus() : SystemError("sync the folder of", options_.path);
  close(file);
  return status;
}

void FileLog::Send(Message message) {
  if (!message.envelope.has_disk_append()) return;
  const absl::Status status = Write(message.envelope.disk_append().record());
  has_failed_ = !status.ok();
  Message reply = DurableReply(message);
  SetStatus(status, reply);
  receiver_(std::move(reply));
}

absl::Status FileLog::Write(const std::string& record) {
  const bool is_full = size_ > 0 && size_ + record.size() > options_.file_bytes_max;
  return is_full || has_failed_ ? Replace(record) : Append(record);
}

absl::Status FileLog::Append(const std::string& record) {
  COVEY_RETURN_IF_ERROR(WriteAll(file_, record, options_.path));
  if (fdatasync(file_) != 0) return SystemError("sync", options_.path);
  size_ += record.size();
  return absl::OkStatus();
}

absl::Status FileLog::Replace(const std::string& record) {
  const std::string path = options_.path + ".new";
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return SystemError("open", path);
  absl::Status status = WriteFirst(file, record, path);
  if (status.ok() && rename(path.c_str(), options_.path.c_str()) != 0) {
    status = SystemError("rename", path);
  }
  if (!status.ok()) {
    unlink(path.c_str());
    close(file);
    return status;
  }
  close(std::exchange(file_, file));
  size_ = record.size();
  return SyncFolder();
}

void NullLog::Send(Message message) {
  if (message.envelope.has_disk_append()) receiver_(DurableReply(message));
}

}  // namespace covey::scheduler
