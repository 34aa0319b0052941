// SPDX-License-Identifier: Apache-2.0
#include "client/cli/model/whole_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cli/console/text_file.h"

namespace covey::cli {
WholeFile::WholeFile(std::string path, std::string fresh, int descriptor)
    : path_(std::move(path)), fresh_(std::move(fresh)), descriptor_(descriptor) {}

WholeFile::~WholeFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!fresh_.empty()) unlink(fresh_.c_str());
}

absl::Status WholeFile::Failure(const char* doing) {
  status_ = absl::ErrnoToStatus(errno, absl::StrCat(doing, " ", path_));
  return status_;
}

absl::StatusOr<std::unique_ptr<WholeFile>> WholeFile::Begin(const std::string& path,
                                                            uint64_t bytes) {
  const std::string fresh = absl::StrCat(path, ".", getpid(), ".new");
  const int descriptor = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, absl::StrCat("writing ", path));
  auto file = absl::WrapUnique(new WholeFile(path, fresh, descriptor));
  // The room is taken at once, so that a full disk is known before long work.
  if (bytes > 0 && fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) != 0 &&
      errno != EOPNOTSUPP) {
    return file->Failure("making room for");
  }
  return file;
}

absl::Status WholeFile::Append(std::span<const uint8_t> bytes) {
  if (!status_.ok()) return status_;
  const absl::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return WriteAll(descriptor_, text) ? absl::OkStatus() : Failure("writing");
}

absl::Status WholeFile::Finish() {
  if (!status_.ok()) return status_;
  if (fsync(descriptor_) != 0) return Failure("syncing");
  if (close(std::exchange(descriptor_, -1)) != 0) return Failure("closing");
  if (rename(fresh_.c_str(), path_.c_str()) != 0) return Failure("naming");
  fresh_.clear();
  const int folder = open(FolderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return Failure("syncing the folder of");
  const bool synced = fsync(folder) == 0;
  const absl::Status status = synced ? absl::OkStatus() : Failure("syncing the folder of");
  close(folder);
  return status;
}

}  // namespace covey::cli
