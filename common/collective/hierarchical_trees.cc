// SPDX-License-Identifier: Apache-2.0
#include "common/collective/hierarchical_trees.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/base/check.h"

namespace covey {
namespace {

// Up to this many places send directly to one of them. More would all arrive at the same time, so
// they form a chain.
constexpr size_t kStarPlacesMax = 8;

}  // namespace

HierarchicalTrees::HierarchicalTrees(std::span<const TopologyPath> paths)
    : order_(paths.size()), place_(paths.size()) {
  COVEY_CHECK(!paths.empty());
  const auto size = static_cast<uint32_t>(paths.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](uint32_t a, uint32_t b) { return paths[a] < paths[b]; });
  for (uint32_t place = 0; place < size; ++place) place_[order_[place]] = place;
  AddDomain(paths, 0, size, 0);
}

// Members [begin, end) agree on the first `level` names of their paths.
uint32_t HierarchicalTrees::AddDomain(std::span<const TopologyPath> paths, uint32_t begin,
                                      uint32_t end, size_t level) {
  Domain domain{.begin = begin, .end = end, .children = {}};
  const auto same = [&](uint32_t a, uint32_t b) {
    // Below the last name every member is a place by itself.
    return level < kNamedLevels && paths[order_[a]].parts[level] == paths[order_[b]].parts[level];
  };
  if (end - begin > 1) {
    uint32_t from = begin;
    for (uint32_t place = begin + 1; place <= end; ++place) {
      if (place < end && same(place, from)) continue;
      domain.children.push_back(AddDomain(paths, from, place, level + 1));
      from = place;
    }
  }
  domains_.push_back(std::move(domain));
  return static_cast<uint32_t>(domains_.size() - 1);
}

bool HierarchicalTrees::Holds(const Domain& domain, uint32_t rank) const {
  return place_[rank] >= domain.begin && place_[rank] < domain.end;
}

size_t HierarchicalTrees::ChildWith(const Domain& domain, uint32_t rank) const {
  const auto after =
      std::partition_point(domain.children.begin(), domain.children.end(),
                           [&](uint32_t child) { return domains_[child].end <= place_[rank]; });
  return static_cast<size_t>(after - domain.children.begin());
}

// The member of `domain` that gathers for `owner`, a member of the neighbor domain `home`.
uint32_t HierarchicalTrees::Representative(const Domain& domain, const Domain& home,
                                           uint32_t owner) const {
  if (Holds(domain, owner)) return owner;
  return order_[domain.begin + (place_[owner] - home.begin) % (domain.end - domain.begin)];
}

// Walks from the domain of all members down to the one of `rank` alone. In each domain `collector`
// gathers from the representatives of the other places; once `rank` represents a place, it does so
// in all places further down.
TreeLinks HierarchicalTrees::LinksOf(uint32_t owner, uint32_t rank) const {
  std::vector<std::vector<uint32_t>> children;  // per domain on the path that `rank` represents
  TreeLinks links;
  uint32_t collector = owner;
  const Domain* domain = &domains_.back();
  while (!domain->children.empty()) {
    const size_t home = ChildWith(*domain, collector);
    const size_t mine = ChildWith(*domain, rank);
    const size_t places = domain->children.size();
    // The place `distance` steps after the collector's, wrapping.
    const auto member_at = [&](size_t distance) {
      return Representative(domains_[domain->children[(home + distance) % places]],
                            domains_[domain->children[home]], collector);
    };
    const size_t distance = (mine + places - home) % places;
    const uint32_t mine_collector = member_at(distance);
    if (mine_collector == rank) {
      children.emplace_back();
      if (places <= kStarPlacesMax) {
        if (distance == 0) {
          for (size_t i = 1; i < places; ++i) children.back().push_back(member_at(i));
        } else {
          links.parent = collector;
        }
      } else {
        // A chain: 1 -> 2 -> ... -> 0, in places after the collector's.
        if (distance != 0) links.parent = member_at((distance + 1) % places);
        const size_t before = distance == 0 ? places - 1 : distance - 1;
        if (before != 0) children.back().push_back(member_at(before));
      }
    }
    collector = mine_collector;
    domain = &domains_[domain->children[mine]];
  }
  // The nearest children are added first.
  for (auto level = children.rbegin(); level != children.rend(); ++level) {
    links.children.insert(links.children.end(), level->begin(), level->end());
  }
  return links;
}

}  // namespace covey
