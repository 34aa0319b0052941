// SPDX-License-Identifier: Apache-2.0
#include "common/cluster/topology.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/cluster/limits.h"

namespace covey {
namespace {

// Number of parts that name a domain of `level`: a zone needs one, a device all four.
size_t PartsTo(Level level) { return kNamedLevels - static_cast<size_t>(level); }

std::strong_ordering Compare(const TopologyPath& a, const TopologyPath& b, Level level) {
  const size_t parts = PartsTo(level);
  return std::lexicographical_compare_three_way(a.parts.begin(), a.parts.begin() + parts,
                                                b.parts.begin(), b.parts.begin() + parts);
}

}  // namespace

absl::string_view LevelName(Level level) {
  constexpr std::array<absl::string_view, kLevels> kNames = {"device", "host", "rack", "zone",
                                                             "cluster"};
  return kNames[static_cast<size_t>(level)];
}

TopologyPath ParseTopologyPath(absl::string_view labels) {
  TopologyPath path;
  const std::vector<std::string> parts =
      absl::StrSplit(labels, absl::MaxSplits('/', kNamedLevels - 1));
  std::copy(parts.begin(), parts.end(), path.parts.begin());
  return path;
}

std::string FormatTopologyPath(const TopologyPath& path) {
  const auto last = std::find_if(path.parts.rbegin(), path.parts.rend(),
                                 [](const std::string& part) { return !part.empty(); });
  return absl::StrJoin(path.parts.begin(), last.base(), "/");
}

absl::Status CheckTopologyLabels(absl::string_view labels) {
  if (labels.size() > kLabelBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", labels.size(), " bytes; give at most ", kLabelBytesMax));
  }
  const auto slashes = std::count(labels.begin(), labels.end(), '/');
  if (slashes >= static_cast<std::ptrdiff_t>(kNamedLevels)) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", slashes + 1, " parts; give at most four: zone/rack/host/device"));
  }
  if (std::any_of(labels.begin(), labels.end(), [](unsigned char letter) {
        return absl::ascii_isspace(letter) || absl::ascii_iscntrl(letter);
      })) {
    return absl::InvalidArgumentError(
        "has a space or a control character in it; give zone/rack/host/device without");
  }
  return absl::OkStatus();
}

bool SameDomain(const TopologyPath& a, const TopologyPath& b, Level level) {
  return std::is_eq(Compare(a, b, level));
}

Level CommonLevel(const TopologyPath& a, const TopologyPath& b) {
  Level common = Level::kCluster;
  for (size_t part = 0; part < kNamedLevels && a.parts[part] == b.parts[part]; ++part) {
    if (!a.parts[part].empty()) common = static_cast<Level>(kNamedLevels - 1 - part);
  }
  return common;
}

std::vector<uint32_t> DomainsAt(std::span<const TopologyPath> paths, Level level) {
  std::vector<size_t> order(paths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::is_lt(Compare(paths[a], paths[b], level)); });
  std::vector<uint32_t> domains(paths.size());
  uint32_t domain = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && !SameDomain(paths[order[i - 1]], paths[order[i]], level)) ++domain;
    domains[order[i]] = domain;
  }
  return domains;
}

}  // namespace covey
