// SPDX-License-Identifier: Apache-2.0
#include "client/cli/simulate/cluster_options.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"

namespace covey::cli {
namespace {

// The messages of a step grow with the square of the nodes.
constexpr uint32_t kNodesAsMessagesMax = 1024;
constexpr uint64_t kStepsMax = 1'000'000;
constexpr uint64_t kGradientBytesMax = uint64_t{1} << 42;
constexpr uint64_t kTensorsMax = 1024;
constexpr uint64_t kSamplesMax = 1'000'000'000;

absl::Status InRange(absl::string_view flag, double value, double low, double high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " is ", value, "; choose ", low, " to ", high));
}

absl::Status InRange(absl::string_view flag, uint64_t value, uint64_t low, uint64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " is ", value, "; choose ", low, " to ", high));
}

absl::Status CheckLinks(const LinkOptions& links) {
  constexpr double kGbpsMax = 1e9;
  const auto gbps = [](double bytes_per_second) { return bytes_per_second * 8 / 1e9; };
  COVEY_RETURN_IF_ERROR(InRange("--link-gbps", gbps(links.node_bytes_per_second), 1e-6, kGbpsMax));
  COVEY_RETURN_IF_ERROR(
      InRange("--uplink-gbps", gbps(links.uplink_bytes_per_second), 0.0, kGbpsMax));
  COVEY_RETURN_IF_ERROR(
      InRange("--server-gbps", gbps(links.server_bytes_per_second), 1e-6, kGbpsMax));
  const auto in_range = [&](absl::string_view flag, absl::Duration time, absl::Duration low) {
    return InRange(flag, absl::ToDoubleMicroseconds(time), absl::ToDoubleMicroseconds(low), 6e7);
  };
  COVEY_RETURN_IF_ERROR(in_range("--message-us", links.message_time, absl::ZeroDuration()));
  COVEY_RETURN_IF_ERROR(in_range("--latency-us", links.rack_latency, links.message_time));
  COVEY_RETURN_IF_ERROR(in_range("--uplink-latency-us", links.uplink_latency, links.message_time));
  COVEY_RETURN_IF_ERROR(
      in_range("--server-latency-us", links.server_latency, absl::ZeroDuration()));
  return absl::OkStatus();
}

absl::Status CheckStepTimes(const StepTimeOptions& times, uint32_t nodes) {
  COVEY_RETURN_IF_ERROR(InRange("--step-seconds", absl::ToDoubleSeconds(times.median), 1e-6, 1e6));
  COVEY_RETURN_IF_ERROR(InRange("--step-noise", times.noise, 0.0, 3.0));
  COVEY_RETURN_IF_ERROR(InRange("--hiccup-rate", times.hiccup_rate, 0.0, 1.0));
  COVEY_RETURN_IF_ERROR(InRange("--hiccup-factor", times.hiccup_factor, 1.0, 1e6));
  for (const SlowNode& slow : times.slow_nodes) {
    if (slow.rank >= nodes) {
      return absl::InvalidArgumentError(
          absl::StrCat("--straggler names rank ", slow.rank, ", but the last rank is ", nodes - 1));
    }
    COVEY_RETURN_IF_ERROR(InRange("the factor of --straggler", slow.factor, 0.01, 1e6));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ClusterOptions::Validate() const {
  COVEY_RETURN_IF_ERROR(InRange("--nodes", uint64_t{nodes}, 1, kNodesMax));
  COVEY_RETURN_IF_ERROR(InRange("--racks", uint64_t{racks}, 1, nodes));
  COVEY_RETURN_IF_ERROR(InRange("--servers", uint64_t{servers}, 0, kNodesMax));
  COVEY_RETURN_IF_ERROR(InRange("--samples", samples, 1, kSamplesMax));
  COVEY_RETURN_IF_ERROR(InRange("--steps", steps, 1, kStepsMax));
  COVEY_RETURN_IF_ERROR(InRange("--tensors", uint64_t{tensors}, 1, kTensorsMax));
  if (gradient_bytes < tensors || gradient_bytes > kGradientBytesMax) {
    return absl::InvalidArgumentError(
        "--gradient-mib must be more than a byte per tensor, and at most 4194304");
  }
  if (detail == Detail::kMessages && nodes > kNodesAsMessagesMax) {
    return absl::InvalidArgumentError(absl::StrCat("--detail messages is for up to ",
                                                   kNodesAsMessagesMax, " nodes, not ", nodes,
                                                   "; choose model"));
  }
  COVEY_RETURN_IF_ERROR(contract.Validate());
  COVEY_RETURN_IF_ERROR(CheckLinks(links));
  return CheckStepTimes(step_times, nodes);
}

std::vector<uint32_t> RacksOfNodes(uint32_t nodes, uint32_t racks) {
  std::vector<uint32_t> racks_of_nodes;
  for (uint64_t node = 0; node < nodes; ++node) {
    racks_of_nodes.push_back(static_cast<uint32_t>(node * racks / nodes));
  }
  return racks_of_nodes;
}

}  // namespace covey::cli
