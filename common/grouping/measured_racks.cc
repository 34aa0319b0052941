// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/measured_racks.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace covey {
namespace {

bool KnowsEnough(const DistanceMatrix& distances) {
  const size_t nodes = distances.nodes();
  const size_t wanted = std::min(nodes - 1, kMeasuredDistancesMin);
  for (size_t a = 0; a < nodes; ++a) {
    size_t known = 0;
    for (size_t b = 0; b < nodes && known < wanted; ++b) {
      if (b != a && distances.At(a, b) > 0) ++known;
    }
    if (known < wanted) return false;
  }
  return true;
}

// Whether a chain of known distances leads from each node to each other one.
bool AreConnected(const DistanceMatrix& distances) {
  std::vector<size_t> reached = {0};
  std::vector<bool> is_reached(distances.nodes());
  is_reached[0] = true;
  for (size_t next = 0; next < reached.size(); ++next) {
    for (size_t other = 0; other < distances.nodes(); ++other) {
      if (is_reached[other] || !(distances.At(reached[next], other) > 0)) continue;
      is_reached[other] = true;
      reached.push_back(other);
    }
  }
  return reached.size() == distances.nodes();
}

// Whether the racks go with what is known of hosts, and say more.
bool FitsHosts(const Clustering& racks, std::span<const TopologyPath> paths) {
  std::map<std::string, uint32_t> rack_of;
  std::map<uint32_t, size_t> hosts;  // by rack
  for (size_t node = 0; node < paths.size(); ++node) {
    const std::string& host = paths[node].host();
    const auto [at, is_new] = rack_of.try_emplace(host, racks[node]);
    if (host.empty() || is_new) {
      ++hosts[racks[node]];
    } else if (at->second != racks[node]) {
      return false;
    }
  }
  return std::count_if(hosts.begin(), hosts.end(),
                       [](const auto& rack) { return rack.second > 1; }) > 1;
}

}  // namespace

bool RacksAreToBeMeasured(std::span<const TopologyPath> paths) {
  if (paths.size() < kMeasuredRacksFrom || paths.size() > kMeasuredRacksTo) return false;
  const auto unknown = [](const TopologyPath& path) {
    return path.zone().empty() && path.rack().empty();
  };
  if (!std::all_of(paths.begin(), paths.end(), unknown)) return false;
  const std::string& host = paths[0].host();
  return host.empty() || !std::all_of(paths.begin(), paths.end(), [&](const TopologyPath& path) {
           return path.host() == host;
         });
}

Clustering MeasuredRacks(const DistanceMatrix& distances, std::span<const TopologyPath> paths) {
  COVEY_CHECK(distances.nodes() == paths.size() && !paths.empty());
  if (!KnowsEnough(distances) || !AreConnected(distances)) return {};
  std::vector<Clustering> clusterings = LatencyClusters(distances, kMeasuredRackGap);
  if (clusterings.empty() || !FitsHosts(clusterings.back(), paths)) return {};
  return std::move(clusterings.back());
}

std::string MeasuredRackName(uint32_t rack) { return absl::StrCat("measured-", rack); }

size_t NameMeasuredRacks(const DistanceMatrix& distances, std::vector<TopologyPath>& paths) {
  const Clustering racks = MeasuredRacks(distances, paths);
  if (racks.empty()) return 0;
  for (size_t node = 0; node < paths.size(); ++node) {
    // Zone, rack, host, device.
    paths[node].parts[1] = MeasuredRackName(racks[node]);
  }
  return *std::max_element(racks.begin(), racks.end()) + size_t{1};
}

}  // namespace covey
