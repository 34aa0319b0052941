// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/scheduler/scheduler_stub.h"
#include "common/tensor/wire_format.h"

namespace covey::cli {

// What ExportModel writes, and where.
struct ExportOptions {
  // The file; it is replaced as a whole when it exists. NPY where the name ends in ".npy", else
  // safetensors.
  std::string path;
  // Names of tables; empty = all tables of the job.
  std::vector<std::string> tables;
  // The type of every tensor: float32, float16 or, not in NPY, bfloat16.
  WireFormat format = WireFormat::kFloat32;
  // The longest wait for the values of one table.
  absl::Duration timeout = absl::Minutes(10);

  // INVALID_ARGUMENT: names the flag, its value and what is allowed.
  absl::Status Validate() const;
};

struct ExportedTable {
  std::string name;
  std::vector<uint64_t> shape;
  // Updates that its values hold; of the shard with the fewest.
  uint64_t version = 0;
};

struct ExportedModel {
  // In the order of the file: by name.
  std::vector<ExportedTable> tables;
  uint64_t bytes = 0;  // of the file
};

// "wrote model.safetensors: 6 tables, 1.2 MiB".
std::string DescribeExport(absl::string_view path, const ExportedModel& model);

// Writes the values of a running cluster's tables as one safetensors file, a tensor per table, by
// the table's name and in its shape (readers: safetensors, PyTorch, JAX, vLLM and others); or those
// of one table as an NPY file, in its shape.
//
// Joins the cluster as a client meanwhile. Needs memory for the largest table, and holds one table
// at a time. Training goes on; a shard's values are those of its newest durable version, so tables
// that change meanwhile may be some updates apart. `progress` is called at most once per second,
// with one line for a person. Blocks; ends with CANCELLED after SIGINT or SIGTERM.
//
// NOT_FOUND: no table, or none of that name. INVALID_ARGUMENT: NPY, and not exactly one table.
// UNAVAILABLE: no scheduler answers. OUT_OF_RANGE: a
// value is beyond float16. DEADLINE_EXCEEDED: a table was not read in time. Else: the file could
// not be written. The file is as before then.
absl::StatusOr<ExportedModel> ExportModel(const SchedulerTarget& scheduler, const std::string& job,
                                          const ExportOptions& options,
                                          const std::function<void(absl::string_view)>& progress);

}  // namespace covey::cli
