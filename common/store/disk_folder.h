// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/store/folder.h"

namespace covey {

// A store in a folder of a file system, local or shared between machines. Several processes may use
// one such folder, since no two of them write files of one name.
//
// Files have mode 0600 and folders 0700, whatever the umask: a model is its owner's. Links inside
// the store are not followed. The store's folder itself may be a link.
//
// Thread-compatible. Blocks as long as the file system does: on a network file system whose server
// is gone, for ever.
class DiskFolder : public Folder {
 public:
  enum class Missing { kIsError, kIsCreated };

  // Opens the store in the folder `path`. Creates it on request; its parent must exist. NOT_FOUND:
  // no such folder.
  static absl::StatusOr<std::unique_ptr<DiskFolder>> Open(const std::string& path, Missing missing);
  ~DiskFolder() override;
  DiskFolder(const DiskFolder&) = delete;
  DiskFolder& operator=(const DiskFolder&) = delete;

 private:
  class Place;

  DiskFolder(std::string path, int folder) : path_(std::move(path)), folder_(folder) {}

  absl::Status MakeFolder(const std::string& path) override;
  absl::Status CreateFile(const std::string& path) override;
  absl::StatusOr<size_t> WriteSome(const std::string& path, Bytes bytes) override;
  absl::Status SyncFile(const std::string& path) override;
  absl::Status CloseFile(const std::string& path) override;
  absl::Status SyncFolder(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status RemoveFile(const std::string& path) override;
  absl::Status RemoveFolder(const std::string& path) override;
  absl::StatusOr<FolderEntry> Look(const std::string& path) override;
  absl::Status ReadAll(const std::string& path, uint64_t offset, std::span<uint8_t> bytes) override;
  absl::StatusOr<std::vector<FolderEntry>> Entries(const std::string& path) override;

  // For users: the path with that of the store.
  std::string Full(absl::string_view path) const;
  // The status of errno.
  absl::Status Failure(absl::string_view action, absl::string_view path) const;

  const std::string path_;
  const int folder_;
  // A file being written.
  struct OpenFile {
    int descriptor = -1;
    uint64_t written = 0;
    uint64_t started = 0;  // the system writes the bytes before to the disk by now
  };

  // Lets the disk keep up: waits until all but the newest bytes are on it.
  absl::Status Pace(const std::string& path, OpenFile& file) const;

  std::map<std::string, OpenFile> open_;
};

}  // namespace covey
