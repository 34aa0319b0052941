// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace covey::cli {

// A file that appears under its name with all its content, and survives a power cut from then on.
// Until then the bytes are in a file beside it, "NAME.PID.new". A file that was there before stays
// as it is until then, and for ever when this object is destroyed without Finish.
//
// All block. Errors name the path and the cause, and count for good: after one, Finish fails.
class WholeFile {
 public:
  // RESOURCE_EXHAUSTED: the disk has too little room for `bytes`. Others: the folder cannot be
  // written.
  static absl::StatusOr<std::unique_ptr<WholeFile>> Begin(const std::string& path, uint64_t bytes);
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  absl::Status Append(std::span<const uint8_t> bytes);
  // Syncs the file, gives it its name and syncs the folder. Called once, at last.
  absl::Status Finish();

 private:
  WholeFile(std::string path, std::string fresh, int descriptor);
  absl::Status Failure(const char* doing);

  const std::string path_;
  std::string fresh_;  // empty once it has its name
  int descriptor_;
  absl::Status status_;
};

}  // namespace covey::cli
