// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/table.pb.h"

namespace covey::cli {

// The operations that a block measures.
enum class Operations {
  // push, pull and push_pull, as many in flight as OutstandingFor says.
  kRates,
  // 64-byte round trips of push and pull.
  kRoundTrips,
  // One pull at a time, of values that do not change, and after a push each.
  kFreshPulls,
  // 64-byte pulls beside a stream of large pushes.
  kMixed,
  // push, pull and push_pull of rows of a sparse table.
  kRows,
  // Steps that pull and push rows of many sparse tables, beside one table of as many rows.
  kManyTables,
  // Memory and the optimizers' kernels, in one process.
  kMemory,
  // All-reduce of processes that each turn starts.
  kCollectives,
};

// Whether the operations use tables of a cluster.
bool NeedsCluster(Operations operations);

// One block of `covey bench`: a combination of settings that is measured for all sizes. A value.
struct Block {
  const char* name;
  const char* about;
  Operations operations = Operations::kRates;
  // Stands behind the operation in the figure's name: " buffered r=2".
  const char* label = "";
  proto::Contract::Kind contract = proto::Contract::ASYNC;
  proto::Optimizer::Kind optimizer = proto::Optimizer::SGD;
  // 0: the replicas of --replicas.
  uint32_t replicas = 0;
  uint32_t servers = 1;
  uint32_t clients = 1;
  // Sizes below are left out. A block whose `only_bytes` is not 0 measures just this size.
  uint64_t bytes_min = 0;
  uint64_t only_bytes = 0;
  // Whether raw sockets and the like are measured beside it.
  bool has_limits = false;
  // Not null: the same operations on a table with async, SGD and one copy in memory are measured in
  // turns with it, under this label.
  const char* baseline_label = nullptr;
  bool by_default = false;
};

// The label where the tables have `replicas`, which it names when the block leaves their number to
// --replicas.
std::string LabelOf(const Block& block, uint32_t replicas);

// The block that measures its baseline. Precondition: baseline_label is not null.
Block BaselineOf(const Block& block);

// All blocks, in the order in which they run.
std::span<const Block> AllBlocks();

// "rates,latency" → the blocks; "default" and "all" stand for several. INVALID_ARGUMENT: names the
// nearest block.
absl::StatusOr<std::vector<Block>> ParseBlocks(absl::string_view text);
// The names, as ParseBlocks takes them.
std::string BlockNames(const std::vector<Block>& blocks);
// One line per block: its name, and what it measures.
std::string DescribeBlocks();

// Of `sizes`, those that the block measures.
std::vector<uint64_t> SizesOf(const Block& block, const std::vector<uint64_t>& sizes);

// What definitions of the block's tables share, dense or sparse: all but shape and rows. The table
// is named "bench/BLOCK/NAME".
proto::TableSpec SpecOf(const Block& block, absl::string_view name, uint32_t replicas);

}  // namespace covey::cli
