// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/doctor/finding.h"
#include "client/cli/doctor/port_probe.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// What `covey doctor` knows of a cluster. A value.
struct ClusterFacts {
  struct Port {
    // Of a scheduler, its address; of a node, its name.
    std::string owner;
    std::string endpoint;
    PortAnswer answer;
  };

  std::vector<Port> schedulers;
  // The folder of the user's certificate; empty = none.
  std::string tls;
  // Whether the scheduler was asked; not, when the certificate cannot be used.
  bool was_asked = true;
  absl::StatusOr<proto::StatusReply> status;
  // The job that the user expects; empty = any.
  std::string job;
  // The data ports of live nodes.
  std::vector<Port> nodes;
};

// Judges the facts, each by a line of its own. Pure.
Findings CheckCluster(const ClusterFacts& facts);

}  // namespace covey::cli
