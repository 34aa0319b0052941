// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "client/cli/model/whole_file.h"
#include "common/base/buffer.h"
#include "common/recording/recording.h"
#include "proto/view.pb.h"

namespace covey::cli {

// Writes the values of tables, shard by shard, to NPY files in a folder: "TABLE.npy", where the "/"
// of a name becomes "%2F". Blocks. Errors name the path, or the table.
class ValueFiles {
 public:
  // Creates the folder.
  explicit ValueFiles(std::string folder) : folder_(std::move(folder)) {}

  // The values of the next shard, in growing order of table and shard. FAILED_PRECONDITION: shards
  // before it are missing.
  absl::Status Add(const ShardHistory& history, const Buffer& values);
  // After the last shard. FAILED_PRECONDITION: shards are missing at the end.
  absl::Status Finish();

 private:
  absl::Status Begin(const proto::Table& table);

  const std::string folder_;
  // Of the table that is being written.
  std::unique_ptr<WholeFile> file_;
  std::string table_;
  uint64_t written_ = 0;  // elements
  uint64_t elements_ = 0;
};

}  // namespace covey::cli
