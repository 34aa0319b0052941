// SPDX-License-Identifier: Apache-2.0
#include "common/store/disk_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"

namespace covey {
namespace {

constexpr mode_t kFileMode = 0600;
constexpr mode_t kFolderMode = 0700;
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
// Linux writes at most 2 GiB at once.
constexpr size_t kWriteMax = 1 << 30;
// Files are written as fast as the disk takes them, so that copies to the system's cache do not
// take a whole core from others for seconds, and the last sync is short.
constexpr uint64_t kPacedBytes = 64 << 20;

// The folder that holds the store's own: "a/" of "a/b", "." of "b".
std::string ParentOf(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

int SyncOf(const std::string& folder) {
  const int descriptor = open(folder.c_str(), kFolderFlags);
  if (descriptor < 0) return errno;
  const int error = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  return error;
}

}  // namespace

// A path of the store as system calls take it: the descriptor of its folder, and a name in there.
class DiskFolder::Place {
 public:
  Place(int store, const std::string& path) : descriptor_(store) {
    const size_t slash = path.find('/');
    name_ = slash == std::string::npos ? path : path.substr(slash + 1);
    if (slash == std::string::npos) return;
    owned_ = openat(store, path.substr(0, slash).c_str(), kFolderFlags | O_NOFOLLOW);
    descriptor_ = owned_;
  }
  ~Place() {
    if (owned_ >= 0) close(owned_);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  // False: the folder cannot be opened; errno says why.
  bool ok() const { return descriptor_ >= 0; }
  int folder() const { return descriptor_; }
  const char* name() const { return name_.c_str(); }

 private:
  std::string name_;
  int descriptor_;
  int owned_ = -1;
};

absl::StatusOr<std::unique_ptr<DiskFolder>> DiskFolder::Open(const std::string& path,
                                                             Missing missing) {
  if (path.empty()) {
    return absl::InvalidArgumentError("the store's folder has no name: pass its path");
  }
  if (missing == Missing::kIsCreated) {
    const bool created = mkdir(path.c_str(), kFolderMode) == 0;
    if (!created && errno != EEXIST) return SystemError("create the store's folder", path, errno);
    if (const int error = created ? SyncOf(ParentOf(path)) : 0; error != 0) {
      return SystemError("sync the parent of the store's folder", path, error);
    }
  }
  const int folder = open(path.c_str(), kFolderFlags);
  if (folder < 0) return SystemError("open the store's folder", path, errno);
  return absl::WrapUnique(new DiskFolder(path, folder));
}

DiskFolder::~DiskFolder() {
  for (const auto& [path, file] : open_) close(file.descriptor);
  close(folder_);
}

std::string DiskFolder::Full(absl::string_view path) const {
  return path.empty() ? path_ : absl::StrCat(path_, "/", path);
}

absl::Status DiskFolder::Failure(absl::string_view action, absl::string_view path) const {
  return SystemError(action, Full(path), errno);
}

absl::Status DiskFolder::MakeFolder(const std::string& path) {
  if (mkdirat(folder_, path.c_str(), kFolderMode) == 0 || errno == EEXIST) return absl::OkStatus();
  return Failure("create the folder", path);
}

absl::Status DiskFolder::CreateFile(const std::string& path) {
  const Place place(folder_, path);
  const int file = place.ok()
                       ? openat(place.folder(), place.name(),
                                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode)
                       : -1;
  if (file < 0) return Failure("create", path);
  open_[path] = {.descriptor = file};
  return absl::OkStatus();
}

absl::StatusOr<size_t> DiskFolder::WriteSome(const std::string& path, Bytes bytes) {
  OpenFile& file = open_.at(path);
  while (true) {
    const ssize_t written = write(file.descriptor, bytes.data(), std::min(bytes.size(), kWriteMax));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failure("write to", path);
    file.written += static_cast<uint64_t>(written);
    COVEY_RETURN_IF_ERROR(Pace(path, file));
    return static_cast<size_t>(written);
  }
}

absl::Status DiskFolder::Pace(const std::string& path, OpenFile& file) const {
  if (file.written - file.started < kPacedBytes) return absl::OkStatus();
  const auto from = [](uint64_t offset) { return static_cast<off64_t>(offset); };
  const auto length = static_cast<off64_t>(file.written - file.started);
  // A system or file system that cannot do it still syncs the whole file at its end.
  const auto failed = [](int result) { return result != 0 && errno != ENOSYS && errno != EINVAL; };
  if (failed(
          sync_file_range(file.descriptor, 0, from(file.started), SYNC_FILE_RANGE_WAIT_BEFORE)) ||
      failed(sync_file_range(file.descriptor, from(file.started), length, SYNC_FILE_RANGE_WRITE))) {
    return Failure("write to", path);
  }
  file.started = file.written;
  return absl::OkStatus();
}

absl::Status DiskFolder::SyncFile(const std::string& path) {
  return fsync(open_.at(path).descriptor) == 0 ? absl::OkStatus() : Failure("sync", path);
}

absl::Status DiskFolder::CloseFile(const std::string& path) {
  const auto file = open_.find(path);
  if (file == open_.end()) return absl::OkStatus();
  const int descriptor = file->second.descriptor;
  open_.erase(file);
  // EINTR closes the descriptor, too; what was written is synced already.
  return close(descriptor) == 0 || errno == EINTR ? absl::OkStatus() : Failure("close", path);
}

absl::Status DiskFolder::SyncFolder(const std::string& path) {
  if (path.empty()) return fsync(folder_) == 0 ? absl::OkStatus() : Failure("sync", path);
  const int descriptor = openat(folder_, path.c_str(), kFolderFlags | O_NOFOLLOW);
  if (descriptor < 0) return Failure("open the folder", path);
  const absl::Status status =
      fsync(descriptor) == 0 ? absl::OkStatus() : Failure("sync the folder", path);
  close(descriptor);
  return status;
}

absl::Status DiskFolder::Rename(const std::string& from, const std::string& to) {
  const Place source(folder_, from);
  const Place target(folder_, to);
  if (source.ok() && target.ok() &&
      renameat(source.folder(), source.name(), target.folder(), target.name()) == 0) {
    return absl::OkStatus();
  }
  return Failure(absl::StrCat("rename ", from, " to"), to);
}

absl::Status DiskFolder::RemoveFile(const std::string& path) {
  const Place place(folder_, path);
  if (place.ok() && unlinkat(place.folder(), place.name(), 0) == 0) return absl::OkStatus();
  return Failure("remove", path);
}

absl::Status DiskFolder::RemoveFolder(const std::string& path) {
  if (unlinkat(folder_, path.c_str(), AT_REMOVEDIR) == 0) return absl::OkStatus();
  return Failure("remove the folder", path);
}

absl::StatusOr<FolderEntry> DiskFolder::Look(const std::string& path) {
  const Place place(folder_, path);
  struct stat status;
  if (!place.ok() || fstatat(place.folder(), place.name(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return Failure("open", path);
  }
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
    return SystemError("open", Full(path), ELOOP);
  }
  const bool is_folder = S_ISDIR(status.st_mode);
  return FolderEntry{.name = {},
                     .is_folder = is_folder,
                     .bytes = is_folder ? 0 : static_cast<uint64_t>(status.st_size)};
}

absl::Status DiskFolder::ReadAll(const std::string& path, uint64_t offset,
                                 std::span<uint8_t> bytes) {
  const Place place(folder_, path);
  const int file = place.ok() ? openat(place.folder(), place.name(),
                                       O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
                              : -1;
  if (file < 0) return Failure("open", path);
  absl::Status status;
  while (!bytes.empty() && status.ok()) {
    const ssize_t count = pread(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count > 0) {
      offset += static_cast<uint64_t>(count);
      bytes = bytes.subspan(static_cast<size_t>(count));
    } else if (count == 0) {
      status = absl::OutOfRangeError(
          absl::StrCat("cannot read ", Full(path), ": it was cut off at ", offset, " bytes"));
    } else if (errno != EINTR) {
      status = Failure("read", path);
    }
  }
  close(file);
  return status;
}

absl::StatusOr<std::vector<FolderEntry>> DiskFolder::Entries(const std::string& path) {
  const int descriptor =
      openat(folder_, path.empty() ? "." : path.c_str(), kFolderFlags | O_NOFOLLOW);
  if (descriptor < 0) return Failure("open the folder", path);
  DIR* folder = fdopendir(descriptor);
  COVEY_CHECK(folder != nullptr);
  std::vector<FolderEntry> entries;
  absl::Status status;
  // One more than the caller takes, so that it knows.
  while (entries.size() <= kStoreEntriesMax) {
    errno = 0;
    const dirent* found = readdir(folder);
    if (found == nullptr) {
      if (errno != 0) status = Failure("read the folder", path);
      break;
    }
    if (!CheckEntryName(found->d_name).ok()) continue;
    absl::StatusOr<FolderEntry> entry =
        Look(path.empty() ? std::string(found->d_name) : absl::StrCat(path, "/", found->d_name));
    if (!entry.ok()) continue;  // gone meanwhile, or a link
    entry->name = found->d_name;
    entries.push_back(*std::move(entry));
  }
  closedir(folder);
  if (!status.ok()) return status;
  return entries;
}

}  // namespace covey
