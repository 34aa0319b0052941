// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/rows/rows_manifest.h"

namespace covey::cli {

// What ExportRows writes, and where.
struct RowsExportOptions {
  std::string table;
  std::string out;  // the folder
  // From a snapshot, "latest" or as `covey snapshot list` shows it, in this store. Empty = from the
  // running cluster.
  std::string snapshot;
  std::string store;
  SchedulerTarget scheduler;
  std::string job = "default";
  // The folder of an earlier export: only what has changed since. Empty = all rows.
  std::string changed_since;
  absl::Duration timeout = absl::Minutes(1);  // of each piece
  // While the rows are put in order.
  size_t memory_bytes = size_t{256} << 20;

  // INVALID_ARGUMENT: names the flag, its value and what is allowed.
  absl::Status Validate() const;
};

// Writes the rows of a sparse table to a new folder, for NumPy:
//
//   keys.npy       '<u8' [n], ascending: numpy.searchsorted finds a key
//   values.npy     '<f4' [n, width], in the order of the keys
//   removed.npy    '<u8', ascending: only of changes, the keys whose rows went
//   manifest.json  what they are; sizes and CRC-32 of the files
//
// The folder appears when it is whole. While the rows are put in order, they are in the new folder
// once more. Rows of a snapshot are those of its cut. Rows of a running cluster may be some updates
// apart, but no change is lost to the next export of changes. `progress` is called at most once per
// second, with one line for a person. Blocks; ends with CANCELLED after SIGINT or SIGTERM.
//
// ALREADY_EXISTS: the folder is there. OUT_OF_RANGE: what has changed since is not known any more.
// Others as ReadStoredTable and ReadRunningTable, or a file could not be written. There is no
// folder then.
absl::StatusOr<ExportedRows> ExportRows(const RowsExportOptions& options,
                                        const std::function<void(absl::string_view)>& progress);

}  // namespace covey::cli
