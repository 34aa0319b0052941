// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/buffer.h"

namespace covey {

// Whether a file or folder in a store may have this name: [A-Za-z0-9._-], first a letter or digit,
// at most kNameBytesMax bytes. INVALID_ARGUMENT: it may not. Pure.
absl::Status CheckEntryName(absl::string_view name);

// A file or folder in a store.
struct FolderEntry {
  // Without the folder's.
  std::string name;
  bool is_folder = false;
  // Of a file.
  uint64_t bytes = 0;
};

// A store of snapshots: files in folders, at most one folder deep, written once and never changed.
// The operations are those of process.proto, StoreRequest. The subclasses do single system calls;
// every rule about their order, and about what a failure means, is here:
//
// 1. A path is at most one folder and a name, each as CheckEntryName wants it. Anything else is
//    refused before it reaches a disk.
// 2. A file, its name and its folder's name are durable once Sync or Publish returns OK, and may be
//    lost in a crash before.
// 3. A failed write, sync or close ends the file: after a failed sync Linux takes the lost pages
//    for written, so a second sync would lie. The file is removed, and every later call that names
//    it fails in the same way, until Remove.
//
// Thread-compatible. Blocks. Memory: a few hundred bytes per open or failed file; of failed ones
// the 4096 last in order of path are remembered. Errors name the path, the cause and what to do. In
// all methods: INVALID_ARGUMENT: not a path in a store; RESOURCE_EXHAUSTED: no room on the disk, or
// too many open files; UNAVAILABLE: the operating system refuses.
class Folder {
 public:
  using Bytes = std::span<const uint8_t>;

  virtual ~Folder() = default;

  // Appends the parts to a file, one after the other. Offset 0 creates the file, and its folder
  // when there is none. The file stays open until Sync or Remove. ALREADY_EXISTS: there is such a
  // file; OUT_OF_RANGE: `offset` is not its size; FAILED_PRECONDITION: it is not open;
  // RESOURCE_EXHAUSTED: also when kStoreOpenFilesMax files are open.
  absl::Status Append(absl::string_view path, uint64_t offset, std::span<const Bytes> parts);
  // Makes an open file durable and closes it. FAILED_PRECONDITION: it is not open.
  absl::Status Sync(absl::string_view path);
  // Makes a whole file that is durable under its name, or not there at all. Meanwhile its bytes are
  // in "PATH.new". ALREADY_EXISTS: there is such a file.
  absl::Status Publish(absl::string_view path, Bytes bytes);
  // The bytes [offset, offset + bytes) of a file; `bytes` = 0 means to its end. NOT_FOUND: no such
  // file; OUT_OF_RANGE: it ends before; INVALID_ARGUMENT: more than kStoreReadMax.
  absl::StatusOr<Buffer> Read(absl::string_view path, uint64_t offset, uint64_t bytes);
  // The entries of a folder, in growing order of name; `path` empty = the store's own. Leaves out
  // what is neither file nor folder, and names that CheckEntryName refuses. NOT_FOUND: no such
  // folder; RESOURCE_EXHAUSTED: more than kStoreEntriesMax entries.
  absl::StatusOr<std::vector<FolderEntry>> List(absl::string_view path);
  // Removes a file for good, and its folder when nothing else is in it; or a folder with its files.
  // Of a folder the file `first` is removed for good before any other; empty, or no such file =
  // none. The files `keep` stay, and then the folder, too. May be repeated after a failure or
  // crash. NOT_FOUND: nothing of that name.
  absl::Status Remove(absl::string_view path, absl::string_view first,
                      const std::set<std::string>& keep = {});

 protected:
  Folder() = default;

  // A status for errno `error`: "cannot ACTION PATH: CAUSE; what to do".
  static absl::Status SystemError(absl::string_view action, absl::string_view path, int error);

 private:
  // The system calls. Paths are valid; an empty one is the store's own folder. Errors are complete.

  // OK too when it exists.
  virtual absl::Status MakeFolder(const std::string& path) = 0;
  // Opens a new file for writing. ALREADY_EXISTS.
  virtual absl::Status CreateFile(const std::string& path) = 0;
  // Writes to the end of an open file; returns how many bytes, which may be fewer.
  virtual absl::StatusOr<size_t> WriteSome(const std::string& path, Bytes bytes) = 0;
  virtual absl::Status SyncFile(const std::string& path) = 0;
  // The file is closed even when this fails.
  virtual absl::Status CloseFile(const std::string& path) = 0;
  // Makes the names in the folder durable.
  virtual absl::Status SyncFolder(const std::string& path) = 0;
  // Within one folder.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // NOT_FOUND.
  virtual absl::Status RemoveFile(const std::string& path) = 0;
  // NOT_FOUND; FAILED_PRECONDITION: something is in it.
  virtual absl::Status RemoveFolder(const std::string& path) = 0;
  // NOT_FOUND; name is not set. Neither file nor folder: FAILED_PRECONDITION.
  virtual absl::StatusOr<FolderEntry> Look(const std::string& path) = 0;
  // Fills `bytes`; they exist. OUT_OF_RANGE: no longer.
  virtual absl::Status ReadAll(const std::string& path, uint64_t offset,
                               std::span<uint8_t> bytes) = 0;
  // In any order; the names are not checked yet. NOT_FOUND.
  virtual absl::StatusOr<std::vector<FolderEntry>> Entries(const std::string& path) = 0;

  struct File {
    uint64_t bytes = 0;
    // OK = open.
    absl::Status failure;
  };

  // The error that ended the file; OK when none did.
  absl::Status FailureOf(const std::string& path) const;
  absl::Status NotOpen(const std::string& path);
  absl::Status Create(const std::string& path);
  absl::Status WriteAll(const std::string& path, Bytes bytes);
  // Syncs and closes the open file.
  absl::Status Complete(const std::string& path);
  // Makes names durable: of the file, and of its folder.
  absl::Status SyncNames(const std::string& path);
  absl::Status RemoveTree(const std::string& path, absl::string_view first,
                          const std::set<std::string>& keep);
  // Ends the file: closes and removes it, and remembers why under `path`. Returns `failure`.
  absl::Status End(const std::string& path, absl::Status failure);
  // Closes and forgets the file, or all files of the folder.
  void Forget(const std::string& path);

  // Open and failed files, by path.
  std::map<std::string, File> files_;
};

}  // namespace covey
