// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace covey {

// How wide a domain is, narrowest first. kCluster contains all nodes.
enum class Level : uint8_t { kDevice, kHost, kRack, kZone, kCluster };
inline constexpr size_t kLevels = 5;
// Levels that have a name in a path.
inline constexpr size_t kNamedLevels = 4;

// "device", "host", "rack", "zone", "cluster".
absl::string_view LevelName(Level level);

// Where a node is. An empty part is unknown.
struct TopologyPath {
  // Widest first, as they are written: zone, rack, host, device.
  std::array<std::string, kNamedLevels> parts;

  const std::string& zone() const { return parts[0]; }
  const std::string& rack() const { return parts[1]; }
  const std::string& host() const { return parts[2]; }
  const std::string& device() const { return parts[3]; }
  // Precondition: level < kCluster.
  const std::string& at(Level level) const {
    return parts[kNamedLevels - 1 - static_cast<size_t>(level)];
  }

  // By zone, then rack, host, device: members of one domain are adjacent.
  friend auto operator<=>(const TopologyPath&, const TopologyPath&) = default;
};

// "zone/rack/host/device" -> path. Takes any text: parts may be missing, and the device is all text
// after the third slash. Pure, like everything here.
TopologyPath ParseTopologyPath(absl::string_view labels);
// The shortest text that reads back as the same path.
std::string FormatTopologyPath(const TopologyPath& path);
// For text from users. INVALID_ARGUMENT: more than four parts, space or control characters in them,
// or longer than kLabelBytesMax; the message continues the phrase "'<labels>' ".
absl::Status CheckTopologyLabels(absl::string_view labels);

// True when both paths agree in all names down to `level`. Two unknown names count as equal, so a
// cluster without labels is one domain at each level.
bool SameDomain(const TopologyPath& a, const TopologyPath& b, Level level);
// The narrowest named domain that contains both; kCluster when there is none. Domains without a
// name do not count, since two unnamed domains may differ.
Level CommonLevel(const TopologyPath& a, const TopologyPath& b);

// The number of each path's domain at `level`, from 0 in the order of their names.
// O(n log n).
std::vector<uint32_t> DomainsAt(std::span<const TopologyPath> paths, Level level);

}  // namespace covey
