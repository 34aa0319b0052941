// SPDX-License-Identifier: Apache-2.0
#include "worker/group/measured_racks.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace covey::worker {
namespace {

bool AllKnown(const DistanceMatrix& distances) {
  for (size_t a = 0; a < distances.nodes(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      if (distances.At(a, b) <= 0) return false;
    }
  }
  return true;
}

// Whether the racks go with what is known of hosts, and say more.
bool FitsHosts(const Clustering& racks, std::span<const TopologyPath> paths) {
  std::map<std::string, uint32_t> rack_of;
  std::map<uint32_t, size_t> hosts;  // by rack
  for (size_t member = 0; member < paths.size(); ++member) {
    const std::string& host = paths[member].host();
    const auto [at, is_new] = rack_of.try_emplace(host, racks[member]);
    if (host.empty() || is_new) {
      ++hosts[racks[member]];
    } else if (at->second != racks[member]) {
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

size_t NameMeasuredRacks(const DistanceMatrix& distances, std::vector<TopologyPath>& paths) {
  COVEY_CHECK(distances.nodes() == paths.size());
  if (!AllKnown(distances)) return 0;
  const std::vector<Clustering> clusterings = LatencyClusters(distances, kMeasuredRackGap);
  if (clusterings.empty() || !FitsHosts(clusterings.back(), paths)) return 0;
  const Clustering& racks = clusterings.back();
  for (size_t member = 0; member < paths.size(); ++member) {
    // Zone, rack, host, device.
    paths[member].parts[1] = absl::StrCat("measured-", racks[member]);
  }
  return *std::max_element(racks.begin(), racks.end()) + size_t{1};
}

}  // namespace covey::worker
