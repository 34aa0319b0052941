// SPDX-License-Identifier: Apache-2.0
#include "client/cli/rows/new_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "client/cli/console/text_file.h"
#include "common/base/status_macros.h"

namespace covey::cli {
namespace {

constexpr size_t kBufferBytes = 1 << 20;

}  // namespace

NewFolder::NewFolder(std::string path, std::string fresh)
    : path_(std::move(path)), fresh_(std::move(fresh)) {}

NewFolder::~NewFolder() {
  if (!is_finished_) RemoveFolder(fresh_);
}

absl::StatusOr<std::unique_ptr<NewFolder>> NewFolder::Begin(const std::string& path) {
  std::string name = path;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  struct stat found;
  if (lstat(name.c_str(), &found) == 0) {
    return absl::AlreadyExistsError(
        absl::StrCat(name, " exists already, and is not replaced; remove it, or choose another"));
  }
  const std::string fresh = absl::StrCat(name, ".", getpid(), ".new");
  if (mkdir(fresh.c_str(), 0777) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("making ", fresh));
  }
  return absl::WrapUnique(new NewFolder(std::move(name), fresh));
}

absl::Status NewFolder::Finish() {
  const auto failure = [this](const char* doing) {
    return absl::ErrnoToStatus(errno, absl::StrCat(doing, " ", path_));
  };
  // Fails where another program has made a folder with content meanwhile.
  if (rename(fresh_.c_str(), path_.c_str()) != 0) return failure("naming");
  is_finished_ = true;
  const int parent = open(FolderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (parent < 0) return failure("syncing the folder of");
  const absl::Status status =
      fsync(parent) == 0 ? absl::OkStatus() : failure("syncing the folder of");
  close(parent);
  return status;
}

FolderFile::FolderFile(const std::string& name, std::unique_ptr<WholeFile> file)
    : file_(std::move(file)) {
  summary_.name = name;
  buffer_.reserve(kBufferBytes);
}

absl::StatusOr<FolderFile> FolderFile::Begin(const NewFolder& folder, const std::string& name,
                                             uint64_t bytes) {
  COVEY_ASSIGN_OR_RETURN(std::unique_ptr<WholeFile> file,
                         WholeFile::Begin(absl::StrCat(folder.path(), "/", name), bytes));
  return FolderFile(name, std::move(file));
}

absl::Status FolderFile::Append(std::span<const uint8_t> bytes) {
  if (buffer_.size() + bytes.size() > kBufferBytes) COVEY_RETURN_IF_ERROR(Flush());
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  return absl::OkStatus();
}

absl::Status FolderFile::Flush() {
  summary_.crc32 = static_cast<uint32_t>(
      crc32(summary_.crc32, buffer_.data(), static_cast<uInt>(buffer_.size())));
  summary_.bytes += buffer_.size();
  const absl::Status written = file_->Append(buffer_);
  buffer_.clear();
  return written;
}

absl::StatusOr<FolderFile::Summary> FolderFile::Finish() {
  COVEY_RETURN_IF_ERROR(Flush());
  COVEY_RETURN_IF_ERROR(file_->Finish());
  return summary_;
}

}  // namespace covey::cli
