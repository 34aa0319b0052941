// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct hwloc_topology;
struct hwloc_bitmap_s;

namespace covey {

// The place of this process, as zone/rack/host/device, from the first of these sources that has
// one:
//
//   labels        from the user: flag --labels, COVEY_LABELS, the configuration file
//   Slurm         SLURM_TOPOLOGY_ADDR, read as SLURM_TOPOLOGY_ADDR_PATTERN says: the last switch is
//                 the rack, the ones above it the zone, the node the host
//   Kubernetes    COVEY_ZONE, COVEY_RACK and NODE_NAME, which a pod's manifest fills from its
//                 node's labels and name; those that are not set stay empty, or the host's name
//   host          the host's name alone
//
// All but the first add the device: the one NUMA node, or else package, of several that this
// process is bound to.

struct TopologyLabels {
  std::string labels;
  // "given", "SLURM_TOPOLOGY_ADDR", "COVEY_ZONE, COVEY_RACK, NODE_NAME", "host name". For users.
  std::string source;
};

// Everything that the process can find out about its place.
struct TopologySurroundings {
  // Null when the variable is not set; an empty value counts as not set.
  std::function<const char*(const char* name)> environment;
  std::string host_name;
  // Finds the device; called only when no labels were given.
  std::function<std::string()> device;
};

// Pure, but for `surroundings`. INVALID_ARGUMENT: names the variable, its value and what is wrong.
absl::StatusOr<TopologyLabels> TopologyLabelsFrom(absl::string_view given,
                                                  const TopologySurroundings& surroundings);

// The same for this process; logs the result and its source. Reads environment, host name and the
// machine's topology: some milliseconds, none when labels are given.
absl::StatusOr<std::string> FindTopologyLabels(absl::string_view given);

// "numa1" or "package0" when `cpus` lie within one of several; empty otherwise.
std::string DeviceOf(hwloc_topology* machine, const hwloc_bitmap_s* cpus);

}  // namespace covey
