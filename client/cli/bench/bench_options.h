// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cli/bench/load/block.h"
#include "common/runtime/config_file.h"

namespace covey::cli {

// The options of `covey bench`. A value.
struct BenchOptions {
  std::vector<Block> blocks;
  std::vector<uint64_t> sizes = {4096, 1 << 20, 16 << 20, 64 << 20};
  std::vector<std::string> transports = {"auto", "tcp", "ipc"};
  int repetitions = 7;
  // Each turn takes at least this long.
  absl::Duration duration = absl::Milliseconds(150);
  // Round trips of 64 bytes per turn.
  int round_trips = 1000;
  // Blocks that do not say themselves are measured once per entry, in turns.
  std::vector<uint32_t> replicas = {1};
  bool limits = true;
  // Of the block "collectives": numbers of members, and algorithms as AlgorithmName has them.
  std::vector<uint32_t> members = {2, 4, 8};
  std::vector<std::string> algorithms = {"auto"};
  // Size of each array of the block "memory".
  uint64_t memory_bytes = 64 << 20;
  // Longest wait, in all and per cluster, for other programs to become quiet.
  absl::Duration quiet_wait = absl::Seconds(30);
  // A word about this run, written into the JSON: a commit, a machine.
  std::string label;
  // `table`, or `json` = false, selects a table instead of JSON.
  bool json = true;
  bool table = false;
  std::string out_file;
  // Set: compare this program with another build of it, and fail when this one is slower.
  std::string against;
  double tolerance = 0.03;
  // Set: measure this cluster, as a program started by `covey run`.
  std::string scheduler;
  std::string job = "default";
  std::string tls;
  // Set: be the other process of a limit.
  std::string limit_partner;

  BenchOptions();

  void AddTo(ConfigFile& file);
  // INVALID_ARGUMENT: names the flag, its value and what is allowed.
  absl::Status Validate() const;
  // Options of how to measure, as arguments of this command; without transports and blocks.
  std::vector<std::string> MeasuringArguments() const;
};

// "3%" or "0.03". INVALID_ARGUMENT: not a part of one.
absl::Status ParseTolerance(absl::string_view text, double& tolerance);

}  // namespace covey::cli
