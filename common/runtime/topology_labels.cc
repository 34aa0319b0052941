// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/topology_labels.h"

#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/cluster/topology.h"
#include "common/runtime/process_main.h"

namespace covey {
namespace {

constexpr char kSlurmAddress[] = "SLURM_TOPOLOGY_ADDR";
constexpr char kSlurmPattern[] = "SLURM_TOPOLOGY_ADDR_PATTERN";
constexpr char kZone[] = "COVEY_ZONE";
constexpr char kRack[] = "COVEY_RACK";
constexpr char kNode[] = "NODE_NAME";

std::string Variable(const TopologySurroundings& surroundings, const char* name) {
  const char* const value = surroundings.environment(name);
  return value == nullptr ? "" : value;
}

absl::Status Wrong(absl::string_view variable, absl::string_view value, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(variable, " is '", value, "', which ", what,
                                                 "; or set COVEY_LABELS=zone/rack/host"));
}

absl::Status CheckPart(absl::string_view variable, absl::string_view value) {
  if (value.find('/') != absl::string_view::npos) {
    return Wrong(variable, value, "has a slash in it; give a name without");
  }
  const absl::Status status = CheckTopologyLabels(value);
  return status.ok() ? status : Wrong(variable, value, status.message());
}

// Slurm's tree plugin writes "core.leaf3.node17", with the pattern "switch.switch.node". A level at
// which the node has no switch is empty.
absl::StatusOr<TopologyPath> FromSlurm(const std::string& address, const std::string& pattern) {
  COVEY_RETURN_IF_ERROR(CheckPart(kSlurmAddress, address));
  std::vector<std::string> parts = absl::StrSplit(address, '.');
  if (!pattern.empty()) {
    const std::vector<std::string> kinds = absl::StrSplit(pattern, '.');
    if (kinds.back() != "node") {
      return Wrong(kSlurmPattern, pattern, "does not end with 'node'; unset it");
    }
    // A node's name may contain dots.
    parts = absl::StrSplit(address, absl::MaxSplits('.', kinds.size() - 1));
    if (parts.size() != kinds.size()) {
      return Wrong(kSlurmAddress, address,
                   absl::StrCat("does not have the ", kinds.size(), " parts of ", kSlurmPattern,
                                "='", pattern, "'; correct one of both"));
    }
  }
  if (parts.back().empty()) {
    return Wrong(kSlurmAddress, address, "does not end with a node's name; correct it");
  }
  TopologyPath path;
  path.parts[2] = std::move(parts.back());
  parts.pop_back();
  if (parts.empty()) return path;
  path.parts[1] = std::move(parts.back());
  parts.pop_back();
  parts.erase(std::remove(parts.begin(), parts.end(), ""), parts.end());
  path.parts[0] = absl::StrJoin(parts, ".");
  return path;
}

// Nothing when none of the variables is set.
absl::StatusOr<std::optional<TopologyPath>> FromKubernetes(
    const TopologySurroundings& surroundings) {
  TopologyPath path;
  bool found = false;
  size_t part = 0;
  for (const char* name : {kZone, kRack, kNode}) {
    std::string value = Variable(surroundings, name);
    COVEY_RETURN_IF_ERROR(CheckPart(name, value));
    found = found || !value.empty();
    path.parts[part++] = std::move(value);
  }
  if (!found) return std::nullopt;
  if (path.host().empty()) path.parts[2] = surroundings.host_name;
  return path;
}

// The device of this process.
std::string BoundDevice() {
  // Without this path, as in a bare container, hwloc finds nothing and complains on standard error.
  if (access("/sys/devices/system/cpu/cpu0/topology", R_OK) != 0) return "";
  hwloc_topology_t machine = nullptr;
  if (hwloc_topology_init(&machine) != 0) return "";
  std::string device;
  hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
  if (hwloc_topology_load(machine) == 0 &&
      hwloc_get_cpubind(machine, cpus, HWLOC_CPUBIND_PROCESS) == 0) {
    device = DeviceOf(machine, cpus);
  }
  hwloc_bitmap_free(cpus);
  hwloc_topology_destroy(machine);
  return device;
}

}  // namespace

std::string DeviceOf(hwloc_topology* machine, const hwloc_bitmap_s* cpus) {
  for (const auto& [type, name] :
       {std::pair(HWLOC_OBJ_NUMANODE, "numa"), std::pair(HWLOC_OBJ_PACKAGE, "package")}) {
    std::vector<unsigned> touched;
    const int count = hwloc_get_nbobjs_by_type(machine, type);
    for (int i = 0; i < count; ++i) {
      const hwloc_obj_t object = hwloc_get_obj_by_type(machine, type, static_cast<unsigned>(i));
      if (hwloc_bitmap_intersects(object->cpuset, cpus)) touched.push_back(object->os_index);
    }
    if (count > 1 && touched.size() == 1) return absl::StrCat(name, touched.front());
  }
  return "";
}

absl::StatusOr<TopologyLabels> TopologyLabelsFrom(absl::string_view given,
                                                  const TopologySurroundings& surroundings) {
  if (!given.empty()) {
    if (const absl::Status status = CheckTopologyLabels(given); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("labels '", given, "' ", status.message(), " (--labels or COVEY_LABELS)"));
    }
    return TopologyLabels{.labels = std::string(given), .source = "given"};
  }
  TopologyPath path;
  std::string source;
  if (const std::string address = Variable(surroundings, kSlurmAddress); !address.empty()) {
    COVEY_ASSIGN_OR_RETURN(path, FromSlurm(address, Variable(surroundings, kSlurmPattern)));
    source = kSlurmAddress;
  } else {
    COVEY_ASSIGN_OR_RETURN(std::optional<TopologyPath> found, FromKubernetes(surroundings));
    if (found.has_value()) {
      path = *std::move(found);
      source = absl::StrCat(kZone, ", ", kRack, ", ", kNode);
    } else {
      path.parts[2] = surroundings.host_name;
      source = "host name";
    }
  }
  path.parts[3] = surroundings.device();
  TopologyLabels labels{.labels = FormatTopologyPath(path), .source = std::move(source)};
  if (const absl::Status status = CheckTopologyLabels(labels.labels); !status.ok()) {
    return Wrong(labels.source, labels.labels, status.message());
  }
  return labels;
}

absl::StatusOr<std::string> FindTopologyLabels(absl::string_view given) {
  COVEY_ASSIGN_OR_RETURN(
      TopologyLabels found,
      TopologyLabelsFrom(given, {.environment = [](const char* name) { return std::getenv(name); },
                                 .host_name = HostName(),
                                 .device = BoundDevice}));
  if (given.empty()) {
    LogInfo("topology_labels", {{"labels", found.labels}, {"source", found.source}});
  }
  return std::move(found.labels);
}

}  // namespace covey
