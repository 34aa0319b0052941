// SPDX-License-Identifier: Apache-2.0
#include "common/store/folder.h"

#include <string.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/planted_bug.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"

namespace covey {
namespace {

constexpr size_t kFailedFilesMax = 4096;

enum class OwnFolder { kRefused, kAllowed };

absl::Status CheckPath(absl::string_view path, OwnFolder own = OwnFolder::kRefused) {
  if (path.empty()) {
    return own == OwnFolder::kAllowed
               ? absl::OkStatus()
               : absl::InvalidArgumentError("the path is empty: name a file or folder");
  }
  const size_t slash = path.find('/');
  if (slash != absl::string_view::npos) {
    COVEY_RETURN_IF_ERROR(CheckEntryName(path.substr(0, slash)));
    path = path.substr(slash + 1);
  }
  return CheckEntryName(path);
}

// "" for a path that stands directly in the store.
std::string FolderOf(absl::string_view path) {
  const size_t slash = path.find('/');
  return slash == absl::string_view::npos ? "" : std::string(path.substr(0, slash));
}

std::string Join(absl::string_view folder, absl::string_view name) {
  return folder.empty() ? std::string(name) : absl::StrCat(folder, "/", name);
}

}  // namespace

absl::Status CheckEntryName(absl::string_view name) {
  const bool good = !name.empty() && name.size() <= kNameBytesMax && absl::ascii_isalnum(name[0]) &&
                    std::all_of(name.begin(), name.end(), [](char c) {
                      return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
                    });
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", name.substr(0, kNameBytesMax), "' cannot be a name in a store: it has 1 to ",
      kNameBytesMax, " bytes of [A-Za-z0-9._-], first a letter or digit, at most one folder deep"));
}

absl::Status Folder::SystemError(absl::string_view action, absl::string_view path, int error) {
  const std::string what =
      absl::StrCat("cannot ", action, " ", path, ": ", strerrordesc_np(error), "; ");
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(absl::StrCat(what, "check the store's folder and the name"));
    case EEXIST:
      return absl::AlreadyExistsError(absl::StrCat(what, "choose another name or remove it"));
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(
          absl::StrCat(what, "make room, for example by deleting old snapshots"));
    case EMFILE:
    case ENFILE:
      return absl::ResourceExhaustedError(absl::StrCat(what, "raise the limit of open files"));
    case ELOOP:
      return absl::FailedPreconditionError(
          absl::StrCat(what, "links are not followed; put the files themselves there"));
    case ENOTEMPTY:
      return absl::FailedPreconditionError(
          absl::StrCat(what, "files of other programs are in it; look at them and remove them"));
    default:
      return absl::UnavailableError(absl::StrCat(what, "check the disk and the permissions"));
  }
}

absl::Status Folder::FailureOf(const std::string& path) const {
  const auto file = files_.find(path);
  return file == files_.end() ? absl::OkStatus() : file->second.failure;
}

absl::Status Folder::NotOpen(const std::string& path) {
  return absl::FailedPreconditionError(absl::StrCat(
      path, " is not being written: append at offset 0 first, and nothing after sync"));
}

absl::Status Folder::Create(const std::string& path) {
  const auto is_open = [](const auto& file) { return file.second.failure.ok(); };
  if (std::count_if(files_.begin(), files_.end(), is_open) >=
      static_cast<std::ptrdiff_t>(kStoreOpenFilesMax)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot create ", path, ": ", kStoreOpenFilesMax, " files are open; sync or remove some"));
  }
  if (const std::string folder = FolderOf(path); !folder.empty()) {
    COVEY_RETURN_IF_ERROR(MakeFolder(folder));
  }
  COVEY_RETURN_IF_ERROR(CreateFile(path));
  files_[path] = {};
  return absl::OkStatus();
}

absl::Status Folder::WriteAll(const std::string& path, Bytes bytes) {
  while (!bytes.empty()) {
    COVEY_ASSIGN_OR_RETURN(const size_t written, WriteSome(path, bytes));
    bytes = bytes.subspan(written);
    files_[path].bytes += written;
  }
  return absl::OkStatus();
}

absl::Status Folder::End(const std::string& path, absl::Status failure) {
  // The results are of no use: the file is given up either way.
  CloseFile(path).IgnoreError();
  RemoveFile(path).IgnoreError();
  files_[path].failure = failure;
  if (files_.size() > kFailedFilesMax + kStoreOpenFilesMax) {
    files_.erase(std::find_if(files_.begin(), files_.end(),
                              [](const auto& file) { return !file.second.failure.ok(); }));
  }
  return failure;
}

absl::Status Folder::Append(absl::string_view where, uint64_t offset,
                            std::span<const Bytes> parts) {
  COVEY_RETURN_IF_ERROR(CheckPath(where));
  const std::string path(where);
  COVEY_RETURN_IF_ERROR(FailureOf(path));
  if (offset == 0 && !files_.contains(path)) COVEY_RETURN_IF_ERROR(Create(path));
  const auto file = files_.find(path);
  if (file == files_.end()) return NotOpen(path);
  if (file->second.bytes != offset) {
    return absl::OutOfRangeError(absl::StrCat("cannot append to ", path, " at offset ", offset,
                                              ": it has ", file->second.bytes, " bytes"));
  }
  for (const Bytes& part : parts) {
    if (absl::Status status = WriteAll(path, part); !status.ok()) return End(path, status);
  }
  return absl::OkStatus();
}

absl::Status Folder::Complete(const std::string& path) {
  COVEY_RETURN_IF_ERROR(SyncFile(path));
  return CloseFile(path);
}

absl::Status Folder::SyncNames(const std::string& path) {
  if (Planted(PlantedBug::kNoFolderSync)) return absl::OkStatus();
  const std::string folder = FolderOf(path);
  COVEY_RETURN_IF_ERROR(SyncFolder(folder));
  return folder.empty() ? absl::OkStatus() : SyncFolder("");
}

absl::Status Folder::Sync(absl::string_view where) {
  COVEY_RETURN_IF_ERROR(CheckPath(where));
  const std::string path(where);
  COVEY_RETURN_IF_ERROR(FailureOf(path));
  if (!files_.contains(path)) return NotOpen(path);
  absl::Status status = Complete(path);
  if (status.ok()) status = SyncNames(path);
  if (!status.ok()) return End(path, std::move(status));
  files_.erase(path);
  return absl::OkStatus();
}

absl::Status Folder::Publish(absl::string_view where, Bytes bytes) {
  COVEY_RETURN_IF_ERROR(CheckPath(where));
  const std::string path(where);
  const std::string fresh = absl::StrCat(path, ".new");
  COVEY_RETURN_IF_ERROR(CheckPath(fresh));
  COVEY_RETURN_IF_ERROR(FailureOf(path));
  const absl::StatusOr<FolderEntry> present = Look(path);
  if (present.ok()) return SystemError("publish", path, EEXIST);
  if (!absl::IsNotFound(present.status())) return present.status();

  // A writer before this one may have left its bytes.
  if (absl::Status status = RemoveFile(fresh); !status.ok() && !absl::IsNotFound(status)) {
    return status;
  }
  files_.erase(fresh);
  COVEY_RETURN_IF_ERROR(Create(fresh));
  absl::Status status = WriteAll(fresh, bytes);
  if (status.ok()) status = Complete(fresh);
  if (status.ok()) status = Rename(fresh, path);
  if (!status.ok()) {
    End(fresh, status).IgnoreError();
    files_.erase(fresh);
    return status;
  }
  files_.erase(fresh);
  if (status = SyncNames(path); !status.ok()) return End(path, std::move(status));
  return absl::OkStatus();
}

absl::StatusOr<Buffer> Folder::Read(absl::string_view where, uint64_t offset, uint64_t bytes) {
  COVEY_RETURN_IF_ERROR(CheckPath(where));
  const std::string path(where);
  COVEY_RETURN_IF_ERROR(FailureOf(path));
  COVEY_ASSIGN_OR_RETURN(const FolderEntry file, Look(path));
  if (file.is_folder) {
    return absl::FailedPreconditionError(absl::StrCat("cannot read ", path, ": it is a folder"));
  }
  if (offset > file.bytes || bytes > file.bytes - offset) {
    return absl::OutOfRangeError(absl::StrCat("cannot read ", bytes, " bytes of ", path,
                                              " from offset ", offset, ": it has ", file.bytes,
                                              " bytes; it was cut off, or is another file"));
  }
  if (bytes == 0) bytes = file.bytes - offset;
  if (bytes > kStoreReadMax) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", bytes, " bytes of ", path,
                                                   " at once: at most ", kStoreReadMax));
  }
  Buffer buffer = Buffer::Allocate(bytes);
  if (bytes > 0) COVEY_RETURN_IF_ERROR(ReadAll(path, offset, {buffer.MutableData(), bytes}));
  return buffer;
}

absl::StatusOr<std::vector<FolderEntry>> Folder::List(absl::string_view path) {
  COVEY_RETURN_IF_ERROR(CheckPath(path, OwnFolder::kAllowed));
  COVEY_ASSIGN_OR_RETURN(std::vector<FolderEntry> entries, Entries(std::string(path)));
  std::erase_if(entries, [](const FolderEntry& entry) { return !CheckEntryName(entry.name).ok(); });
  if (entries.size() > kStoreEntriesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot list '", path, "': it has more than ", kStoreEntriesMax,
                     " entries; delete old snapshots, and move away what is not of this store"));
  }
  std::sort(entries.begin(), entries.end(),
            [](const FolderEntry& a, const FolderEntry& b) { return a.name < b.name; });
  return entries;
}

void Folder::Forget(const std::string& path) {
  for (auto file = files_.begin(); file != files_.end();) {
    if (file->first != path && !absl::StartsWith(file->first, path + "/")) {
      ++file;
      continue;
    }
    // Nothing that was written counts any more, so neither does a failure.
    if (file->second.failure.ok()) CloseFile(file->first).IgnoreError();
    file = files_.erase(file);
  }
}

absl::Status Folder::Remove(absl::string_view where, absl::string_view first,
                            const std::set<std::string>& keep) {
  COVEY_RETURN_IF_ERROR(CheckPath(where));
  if (!first.empty()) COVEY_RETURN_IF_ERROR(CheckEntryName(first));
  const std::string path(where);
  const bool had_failed = !FailureOf(path).ok();
  Forget(path);
  const absl::StatusOr<FolderEntry> entry = Look(path);
  if (!entry.ok()) {
    return had_failed && absl::IsNotFound(entry.status()) ? absl::OkStatus() : entry.status();
  }
  COVEY_RETURN_IF_ERROR(entry->is_folder ? RemoveTree(path, first, keep) : RemoveFile(path));
  const std::string folder = FolderOf(path);
  // It fails where another file is in it.
  if (!folder.empty() && RemoveFolder(folder).ok()) return SyncFolder("");
  return SyncFolder(folder);
}

absl::Status Folder::RemoveTree(const std::string& path, absl::string_view first,
                                const std::set<std::string>& keep) {
  if (!first.empty()) {
    const absl::Status status = RemoveFile(Join(path, first));
    if (!status.ok() && !absl::IsNotFound(status)) return status;
    // Also when it is gone already: its removal may not be durable.
    COVEY_RETURN_IF_ERROR(SyncFolder(path));
  }
  COVEY_ASSIGN_OR_RETURN(const std::vector<FolderEntry> entries, List(path));
  bool is_empty = true;
  for (const FolderEntry& entry : entries) {
    if (keep.contains(entry.name)) {
      is_empty = false;
      continue;
    }
    COVEY_RETURN_IF_ERROR(RemoveFile(Join(path, entry.name)));
  }
  return is_empty ? RemoveFolder(path) : SyncFolder(path);
}

}  // namespace covey
