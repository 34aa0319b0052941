// SPDX-License-Identifier: Apache-2.0
#include "scheduler/log/os_log_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/base/descriptor.h"
#include "common/base/status_macros.h"

namespace covey::scheduler {
namespace {

constexpr mode_t kMode = 0644;

absl::Status SystemError(absl::string_view action, const std::string& path) {
  return absl::UnavailableError(absl::StrCat("cannot ", action, " the scheduler log ", path, ": ",
                                             strerrordesc_np(errno),
                                             "; check the folder, its permissions and free space"));
}

// `path`: of the log, for users. `at`: where `file` was opened.
//
// INVALID_ARGUMENT: it is not an ordinary file; FAILED_PRECONDITION: another process has the lock,
// or has put another file there since this one was opened; the lock of a file that is not there
// keeps nobody out.
absl::Status Lock(int file, const std::string& at, const std::string& path) {
  struct stat ours;
  if (fstat(file, &ours) != 0) return SystemError("look at", path);
  if (!S_ISREG(ours.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the scheduler log ", path, " is a device or pipe: name an ordinary file"));
  }
  const bool locked = flock(file, LOCK_EX | LOCK_NB) == 0;
  if (!locked && errno != EWOULDBLOCK) return SystemError("lock", path);
  struct stat there;
  if (locked && stat(at.c_str(), &there) == 0 && ours.st_ino == there.st_ino &&
      ours.st_dev == there.st_dev) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the scheduler log ", path,
                   " is in use by another scheduler: stop that one or name another file"));
}

class OsLogFile : public LogFile {
 public:
  OsLogFile(Descriptor file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  absl::StatusOr<std::string> Read() override {
    std::string bytes;
    char piece[64 << 10];
    while (true) {
      const ssize_t count =
          pread(file_.number(), piece, sizeof(piece), static_cast<off_t>(bytes.size()));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return SystemError("read", path_);
      if (count == 0) return bytes;
      bytes.append(piece, static_cast<size_t>(count));
    }
  }

  absl::Status Clear() override {
    return ftruncate(file_.number(), 0) == 0 ? absl::OkStatus() : SystemError("empty", path_);
  }

  absl::Status Append(absl::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = write(file_.number(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return SystemError("write", path_);
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    return fdatasync(file_.number()) == 0 ? absl::OkStatus() : SystemError("sync", path_);
  }

 private:
  const Descriptor file_;
  const std::string path_;  // of the log, for users
};

absl::StatusOr<std::unique_ptr<LogFile>> OpenLocked(const std::string& at, int flags,
                                                    const std::string& path) {
  Descriptor file(open(at.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | flags, kMode));
  if (!file.open()) return SystemError("open", at);
  COVEY_RETURN_IF_ERROR(Lock(file.number(), at, path));
  return std::make_unique<OsLogFile>(std::move(file), path);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LogFile>> OsLogFolder::OpenLog() {
  COVEY_ASSIGN_OR_RETURN(auto file, OpenLocked(path_, 0, path_));
  const std::unique_ptr<char, decltype(&free)> found(realpath(path_.c_str(), nullptr), &free);
  if (found == nullptr) return SystemError("find", path_);
  log_ = found.get();
  successor_ = log_ + ".new";
  return file;
}

absl::StatusOr<std::unique_ptr<LogFile>> OsLogFolder::CreateSuccessor() {
  COVEY_ASSIGN_OR_RETURN(auto file, OpenLocked(successor_, O_TRUNC, path_));
  // As the operator has made the log. Whoever may not give a file away owns both.
  struct stat old;
  if (stat(log_.c_str(), &old) == 0) {
    const bool has_mode = chmod(successor_.c_str(), old.st_mode & 07777) == 0;
    const bool is_given = has_mode && chown(successor_.c_str(), old.st_uid, old.st_gid) == 0;
    if (!has_mode || (!is_given && errno != EPERM)) return SystemError("set the mode of", path_);
  }
  return file;
}

absl::Status OsLogFolder::RenameSuccessor() {
  return rename(successor_.c_str(), log_.c_str()) == 0 ? absl::OkStatus()
                                                       : SystemError("rename", successor_);
}

void OsLogFolder::RemoveSuccessor() { unlink(successor_.c_str()); }

absl::Status OsLogFolder::Sync() {
  const std::string folder = log_.substr(0, log_.rfind('/') + 1);
  const Descriptor file(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file.open()) return SystemError("open the folder of", path_);
  return fsync(file.number()) == 0 ? absl::OkStatus() : SystemError("sync the folder of", path_);
}

}  // namespace covey::scheduler
