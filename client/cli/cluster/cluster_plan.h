// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/cli/cluster/cluster_file.h"
#include "common/security/identity.h"

namespace covey::cli {

// One process that runs on a host of a cluster. A value.
struct PlannedProcess {
  // As the scheduler calls it: "server-0".
  std::string name;
  IdentityRole role = IdentityRole::kServer;
  // Index in ClusterFile::hosts.
  size_t host = 0;
  // What has to be on the host: a path, or a name to be found on its PATH.
  std::string program;
  // The whole command line, beginning with `env` and variables where there are any.
  std::vector<std::string> command;
  // Where it stands in the file: "hosts.yaml:7".
  std::string at;
};

// All of its processes, the schedulers first, then servers, then workers; ranks in the order of the
// file. Precondition: each host has an address. Pure.
std::vector<PlannedProcess> PlanProcesses(const ClusterFile& file);

// "10.0.0.1:7070,10.0.0.2:7070". Pure.
std::string SchedulerAddresses(const ClusterFile& file);

// The roles whose certificates `host` needs. Pure.
std::vector<IdentityRole> RolesOn(const std::vector<PlannedProcess>& processes, size_t host);

// Whether the hosts, which all have an address, reach each other. INVALID_ARGUMENT: where, why and
// what to write. Pure.
absl::Status CheckAddresses(const ClusterFile& file);

// Looks up the hosts without an address, as this machine knows them. Blocks. NOT_FOUND: one has
// none.
absl::Status ResolveAddresses(ClusterFile* file);

}  // namespace covey::cli
