// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/snapshot/snapshot_reader.h"

namespace covey::cli {

// Writes the values of a snapshot's tables as one safetensors file: a float32 tensor per table, by
// the table's name and in its shape. Verifies what it reads. Returns the size of the file, which
// appears under its name when it is whole. Blocks. Memory: one piece. Ends with CANCELLED after
// SIGINT or SIGTERM.
//
// NOT_FOUND: the snapshot has no tables; INVALID_ARGUMENT: the format has no such name; DATA_LOSS:
// the snapshot is damaged. Else: the file could not be written. The file is as before then.
absl::StatusOr<uint64_t> ExportSnapshot(const SnapshotReader& snapshot, const std::string& path);

}  // namespace covey::cli
