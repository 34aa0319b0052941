// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/simulate/cluster_options.h"
#include "common/runtime/config_file.h"

namespace covey::cli {

// The options of `covey simulate`. A value. Fields in other units than those of ClusterOptions are
// converted by Finish.
struct SimulateOptions {
  std::string preset = "none";
  ClusterOptions cluster;
  // The numbers of groups to simulate, one after another; 0 = as many as the planner chooses.
  std::vector<uint32_t> groups = {1};
  std::string trace_file;
  bool json = false;
  std::string report_file;

  // Declares the flags, with the current values as defaults.
  void AddTo(ConfigFile& file);
  // INVALID_ARGUMENT: names the flag, its value and what is allowed.
  absl::Status Finish();

  // In the units of the flags.
  double gradient_mib = 100;
  double link_gbps = 25;
  double uplink_gbps = 0;
  double server_gbps = 25;
  double message_us = 5;
  double latency_us = 20;
  double uplink_latency_us = 30;
  double server_latency_us = 30;
  double step_seconds = 0.1;
};

// The settings of a preset:
//   none  the defaults
//   cori  a cluster like that of Kurth et al. (SC17): 9,600 nodes, lognormal noise of 0.08, rare
//         hiccups, and communication of about 0.02 log2(members) + 0.001 groups step times
//   ssp   32 single workers with frequent hiccups, for comparing degrees of staleness
// INVALID_ARGUMENT: an unknown name; lists the known ones.
absl::StatusOr<SimulateOptions> PresetOptions(absl::string_view name);

}  // namespace covey::cli
