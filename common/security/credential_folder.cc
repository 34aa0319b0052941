// SPDX-License-Identifier: Apache-2.0
#include "common/security/credential_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/descriptor.h"
#include "common/base/status_macros.h"

namespace covey {
namespace {

constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

// What the mode of a private file must not have. A process that is not root's may read one of root
// through its group, as systemd's credentials and Kubernetes' secrets are given.
mode_t RefusedMode(const struct stat& found) {
  const bool is_given_by_root = found.st_uid == 0 && geteuid() != 0;
  return is_given_by_root ? kOthers & ~S_IRGRP : kOthers;
}

absl::Status Failure(absl::string_view doing, absl::string_view path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(doing, " ", path));
}

std::string Trimmed(const std::string& path) {
  std::string name = path;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  return name;
}

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

absl::Status Sync(const std::string& folder) {
  const Descriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.open() || fsync(opened.number()) != 0) return Failure("syncing", folder);
  return absl::OkStatus();
}

absl::Status WriteNew(const std::string& path, const CredentialFile& file) {
  const mode_t mode = file.readers == Readers::kOwner ? 0600 : 0644;
  const Descriptor opened(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!opened.open()) return Failure("writing", path);
  absl::string_view rest = file.content;
  while (!rest.empty()) {
    const ssize_t count = write(opened.number(), rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Failure("writing", path);
    rest.remove_prefix(count);
  }
  if (fchmod(opened.number(), mode) != 0) return Failure("setting the mode of", path);
  return fsync(opened.number()) == 0 ? absl::OkStatus() : Failure("syncing", path);
}

absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(opendir(folder.c_str()), closedir);
  if (opened == nullptr) return Failure("reading", folder);
  std::vector<std::string> names;
  while (const dirent* const entry = readdir(opened.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The files of a folder that is no longer needed, and the folder.
void Remove(const std::string& folder) {
  const auto names = NamesIn(folder);
  if (!names.ok()) return;
  for (const std::string& name : *names) unlink(PathIn(folder, name).c_str());
  rmdir(folder.c_str());
}

// Whether there is a folder that may be replaced; false = there is nothing of that name.
absl::StatusOr<bool> FindReplaceable(const std::string& path,
                                     std::span<const absl::string_view> replaced) {
  struct stat found;
  if (lstat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) return false;
    return Failure("reading", path);
  }
  if (!S_ISDIR(found.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is not a folder, and is not replaced; choose another name"));
  }
  COVEY_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(path));
  for (const std::string& name : names) {
    if (std::find(replaced.begin(), replaced.end(), name) == replaced.end()) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, " holds ", name,
                       ", which is none of the files to be written, so the folder stays as it is; "
                       "choose a new one"));
    }
  }
  return true;
}

absl::Status SwapIn(const std::string& fresh, const std::string& path, bool replaces) {
  const unsigned int how = replaces ? RENAME_EXCHANGE : RENAME_NOREPLACE;
  if (renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, path.c_str(), how) == 0) {
    return Sync(ParentOf(path));
  }
  if (errno != EINVAL && errno != EBUSY) return Failure("naming", path);
  return absl::FailedPreconditionError(absl::StrCat(
      path, " cannot be replaced as a whole: it is a mount point, or its file system does not ",
      "exchange folders; write to a folder on a local disk, and copy it"));
}

}  // namespace

std::string PathIn(const std::string& folder, absl::string_view name) {
  return absl::StrCat(folder, "/", name);
}

absl::StatusOr<Secret> ReadCredential(const std::string& path, Readers readers) {
  // A named pipe does not hold it up.
  const Descriptor opened(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat found;
  if (!opened.open() || fstat(opened.number(), &found) != 0) return Failure("reading", path);
  if (!S_ISREG(found.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a file; put one there"));
  }
  if (readers == Readers::kOwner && (found.st_mode & RefusedMode(found)) != 0) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s is private, but its mode %03o lets others use it; run: chmod 600 %s",
                        path, static_cast<unsigned int>(found.st_mode & 0777), path));
  }
  if (found.st_size < 0 || static_cast<uint64_t>(found.st_size) > kCredentialBytesMax) {
    return absl::FailedPreconditionError(absl::StrCat(path, " has ", found.st_size,
                                                      " bytes, more than the ", kCredentialBytesMax,
                                                      " of any such file; is it the right one?"));
  }
  Secret content(found.st_size);
  size_t done = 0;
  while (done < content.bytes().size()) {
    const ssize_t count =
        read(opened.number(), content.bytes().data() + done, content.bytes().size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failure("reading", path);
    if (count == 0) break;
    done += count;
  }
  content.Truncate(done);
  return content;
}

bool HasFile(const std::string& folder, absl::string_view name) {
  struct stat found;
  return lstat(PathIn(folder, name).c_str(), &found) == 0;
}

bool IsDirectlyIn(const std::string& path, const std::string& folder) {
  struct stat parent;
  struct stat other;
  return stat(ParentOf(Trimmed(path)).c_str(), &parent) == 0 && stat(folder.c_str(), &other) == 0 &&
         parent.st_dev == other.st_dev && parent.st_ino == other.st_ino;
}

uint64_t FolderNumber(const std::string& path) {
  struct stat found;
  return stat(path.c_str(), &found) == 0 ? found.st_ino : 0;
}

absl::Status CheckReplaceable(const std::string& path,
                              std::span<const absl::string_view> replaced) {
  return FindReplaceable(Trimmed(path), replaced).status();
}

absl::Status ReplaceFolder(const std::string& path, std::span<const CredentialFile> files,
                           std::span<const absl::string_view> replaced) {
  const std::string name = Trimmed(path);
  COVEY_ASSIGN_OR_RETURN(const bool replaces, FindReplaceable(name, replaced));
  // For its owner alone.
  std::string fresh = absl::StrCat(name, ".new-XXXXXX");
  if (mkdtemp(fresh.data()) == nullptr) return Failure("making a folder beside", name);
  const auto fill = [&]() -> absl::Status {
    for (const CredentialFile& file : files) {
      COVEY_RETURN_IF_ERROR(WriteNew(PathIn(fresh, file.name), file));
    }
    COVEY_RETURN_IF_ERROR(Sync(fresh));
    return SwapIn(fresh, name, replaces);
  };
  absl::Status status = fill();
  // The old files, or those that could not get their place.
  if (replaces || !status.ok()) Remove(fresh);
  return status;
}

absl::Status ReplaceFile(const std::string& folder, const CredentialFile& file) {
  const std::string path = PathIn(Trimmed(folder), file.name);
  const std::string fresh = absl::StrCat(path, ".new");
  unlink(fresh.c_str());
  absl::Status status = WriteNew(fresh, file);
  if (status.ok() && rename(fresh.c_str(), path.c_str()) != 0) status = Failure("naming", path);
  if (!status.ok()) {
    unlink(fresh.c_str());
    return status;
  }
  return Sync(Trimmed(folder));
}

absl::StatusOr<std::unique_ptr<FolderLock>> FolderLock::Take(const std::string& path) {
  Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.open()) return Failure("opening the folder", path);
  auto lock = absl::WrapUnique(new FolderLock(std::move(folder)));
  const int descriptor = lock->folder_.number();
  struct stat locked;
  struct stat named;
  // A folder that was replaced meanwhile is no longer the one that the path names.
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 || fstat(descriptor, &locked) != 0 ||
      stat(path.c_str(), &named) != 0 || locked.st_ino != named.st_ino) {
    return absl::UnavailableError(
        absl::StrCat(path, " is being changed by another process; try again when it has ended"));
  }
  return lock;
}

}  // namespace covey
