// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/model/whole_file.h"

namespace covey::cli {

// A folder that appears under its name with all its files, and survives a power cut from then on.
// Until then they are in a folder beside it, "NAME.PID.new", which goes with this object.
//
// All block. Errors name the path and the cause.
class NewFolder {
 public:
  // ALREADY_EXISTS: there is something of that name.
  static absl::StatusOr<std::unique_ptr<NewFolder>> Begin(const std::string& path);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  // Where its files are now.
  const std::string& path() const { return fresh_; }
  // Called once, when all files are finished.
  absl::Status Finish();

 private:
  NewFolder(std::string path, std::string fresh);

  const std::string path_;
  const std::string fresh_;
  bool is_finished_ = false;
};

// A file of it that is written in small parts, with its checksum.
class FolderFile {
 public:
  struct Summary {
    std::string name;
    uint64_t bytes = 0;
    uint32_t crc32 = 0;  // as of zlib, gzip and PNG
  };

  // As WholeFile::Begin.
  static absl::StatusOr<FolderFile> Begin(const NewFolder& folder, const std::string& name,
                                          uint64_t bytes);
  absl::Status Append(std::span<const uint8_t> bytes);
  absl::StatusOr<Summary> Finish();

 private:
  FolderFile(const std::string& name, std::unique_ptr<WholeFile> file);
  absl::Status Flush();

  Summary summary_;
  std::unique_ptr<WholeFile> file_;
  std::vector<uint8_t> buffer_;
};

}  // namespace covey::cli
