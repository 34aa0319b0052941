// SPDX-License-Identifier: Apache-2.0
#include "common/collective/plan.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace covey {
namespace {

// More rings than this find no free links on today's machines, and make messages small.
constexpr size_t kRingsMax = 4;
// Up to this many places send directly to one of them. More would all arrive at the same time, so
// they form a chain.
constexpr size_t kStarPlacesMax = 8;

// Strides whose rings visit every member, alternately forward and backward: 1, N - 1, 3, N - 3, ...
std::vector<uint32_t> RingStrides(uint32_t size) {
  std::vector<uint32_t> strides;
  for (uint32_t stride = 1; stride <= size / 2 && strides.size() < kRingsMax; ++stride) {
    if (std::gcd(stride, size) != 1) continue;
    strides.push_back(stride);
    if (size - stride != stride) strides.push_back(size - stride);
  }
  if (strides.empty()) strides.push_back(1);
  return strides;
}

}  // namespace

const char* CollectiveName(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kReduceScatter:
      return "reduce-scatter";
    case CollectiveKind::kAllGather:
      return "all-gather";
    case CollectiveKind::kAllReduce:
      return "all-reduce";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kBarrier:
      return "barrier";
  }
  return "collective";
}

const char* AlgorithmName(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kAutomatic:
      return "auto";
    case Algorithm::kDirect:
      return "direct";
    case Algorithm::kRing:
      return "ring";
    case Algorithm::kMultiRing:
      return "multi-ring";
    case Algorithm::kHierarchical:
      return "hierarchical";
    case Algorithm::kHalvingDoubling:
      return "halving-doubling";
    case Algorithm::kTree:
      return "tree";
  }
  return "unknown";
}

absl::StatusOr<Algorithm> ParseAlgorithm(absl::string_view name) {
  if (name == AlgorithmName(Algorithm::kAutomatic)) return Algorithm::kAutomatic;
  std::string names = AlgorithmName(Algorithm::kAutomatic);
  for (const Algorithm algorithm : kAlgorithms) {
    if (name == AlgorithmName(algorithm)) return algorithm;
    absl::StrAppend(&names, ", ", AlgorithmName(algorithm));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no collective algorithm is called '", name, "'; choose one of ", names));
}

std::vector<PartRange> EvenParts(size_t element_count, uint32_t size) {
  std::vector<PartRange> parts(size);
  const size_t quotient = element_count / size;
  const size_t remainder = element_count % size;
  size_t first = 0;
  for (uint32_t i = 0; i < size; ++i) {
    parts[i] = {.first = first, .count = quotient + (i < remainder ? 1 : 0)};
    first += parts[i].count;
  }
  return parts;
}

Plan::Plan(PlanOptions options) : options_(std::move(options)), strides_{1} {
  COVEY_CHECK(options_.size >= 1 && options_.algorithm != Algorithm::kAutomatic);
  COVEY_CHECK(options_.paths.empty() || options_.paths.size() == options_.size);
  if (options_.algorithm == Algorithm::kMultiRing) strides_ = RingStrides(options_.size);
  if (options_.algorithm == Algorithm::kHierarchical) BuildDomains();
}

void Plan::BuildDomains() {
  options_.paths.resize(options_.size);
  order_.resize(options_.size);
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_sort(order_.begin(), order_.end(), [this](uint32_t a, uint32_t b) {
    return options_.paths[a] < options_.paths[b];
  });
  place_.resize(options_.size);
  for (uint32_t place = 0; place < options_.size; ++place) place_[order_[place]] = place;
  AddDomain(0, options_.size, 0);
}

// Members [begin, end) agree on the first `level` names of their paths.
uint32_t Plan::AddDomain(uint32_t begin, uint32_t end, size_t level) {
  Domain domain{.begin = begin, .end = end, .children = {}};
  const auto same = [&](uint32_t a, uint32_t b) {
    // Below the last name every member is a place by itself.
    return level < kNamedLevels &&
           options_.paths[order_[a]].parts[level] == options_.paths[order_[b]].parts[level];
  };
  if (end - begin > 1) {
    uint32_t from = begin;
    for (uint32_t place = begin + 1; place <= end; ++place) {
      if (place < end && same(place, from)) continue;
      domain.children.push_back(AddDomain(from, place, level + 1));
      from = place;
    }
  }
  domains_.push_back(std::move(domain));
  return static_cast<uint32_t>(domains_.size() - 1);
}

bool Plan::Holds(const Domain& domain, uint32_t rank) const {
  return place_[rank] >= domain.begin && place_[rank] < domain.end;
}

size_t Plan::ChildWith(const Domain& domain, uint32_t rank) const {
  const auto after =
      std::partition_point(domain.children.begin(), domain.children.end(),
                           [&](uint32_t child) { return domains_[child].end <= place_[rank]; });
  return static_cast<size_t>(after - domain.children.begin());
}

// The member of `domain` that gathers for `owner`, a member of the neighbor domain `home`.
uint32_t Plan::Representative(const Domain& domain, const Domain& home, uint32_t owner) const {
  if (Holds(domain, owner)) return owner;
  return order_[domain.begin + (place_[owner] - home.begin) % (domain.end - domain.begin)];
}

// Walks from the domain of all members down to the one of `rank` alone. In each domain `collector`
// gathers from the representatives of the other places; once `rank` represents a place, it does so
// in all places further down.
Plan::Links Plan::HierarchicalLinks(uint32_t owner, uint32_t rank) const {
  std::vector<std::vector<uint32_t>> children;  // per domain on the path that `rank` represents
  Links links;
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

// The trees that add a member's own values first.
Plan::Links Plan::LinksOf(uint32_t owner, uint32_t rank) const {
  const uint32_t size = options_.size;
  Links links;
  if (options_.algorithm == Algorithm::kHierarchical) return HierarchicalLinks(owner, rank);
  if (options_.algorithm == Algorithm::kTree) {
    const uint32_t place = (rank + size - owner) % size;
    if (place != 0) links.parent = (owner + (place & (place - 1))) % size;
    for (uint32_t step = 1; step < size && (place & step) == 0; step *= 2) {
      if (place + step < size) links.children.push_back((owner + place + step) % size);
    }
    return links;
  }
  // The first 2^k members halve and double. Each of the others has one of these as its partner,
  // which acts for it.
  const uint32_t core = std::bit_floor(size);
  const bool owner_is_extra = owner >= core;
  if (rank >= core) {
    if (rank == owner) {
      links.children.push_back(rank - core);
    } else {
      links.parent = rank - core;
    }
    return links;
  }
  if (rank + core < size && rank + core != owner) links.children.push_back(rank + core);
  const uint32_t core_owner = owner_is_extra ? owner - core : owner;
  const uint32_t place = rank ^ core_owner;
  if (place != 0) {
    links.parent = rank ^ std::bit_floor(place);
  } else if (owner_is_extra) {
    links.parent = owner;
  }
  for (uint32_t step = core / 2; step > 0 && step > place; step /= 2) {
    links.children.push_back(rank ^ step);
  }
  return links;
}

ReduceNode Plan::Reduce(uint32_t owner, uint32_t stripe, uint32_t rank) const {
  const uint32_t size = options_.size;
  COVEY_CHECK(owner < size && rank < size && stripe < stripes());
  ReduceNode node;
  switch (options_.algorithm) {
    case Algorithm::kDirect:
      if (rank != owner) {
        node = {.operands = {rank}, .parent = owner};
      } else {
        node.operands.resize(size);
        std::iota(node.operands.begin(), node.operands.end(), 0);
      }
      return node;
    case Algorithm::kAutomatic:
    case Algorithm::kRing:
    case Algorithm::kMultiRing: {
      const uint32_t stride = strides_[stripe];
      if (size > 1 && rank != (owner + stride) % size) {
        node.operands.push_back((rank + size - stride) % size);
      }
      node.operands.push_back(rank);
      if (rank != owner) node.parent = (rank + stride) % size;
      return node;
    }
    default: {
      const Links links = LinksOf(owner, rank);
      node = {.operands = {rank}, .parent = links.parent};
      node.operands.insert(node.operands.end(), links.children.begin(), links.children.end());
      return node;
    }
  }
}

SpreadNode Plan::Spread(uint32_t owner, uint32_t stripe, uint32_t rank) const {
  const uint32_t size = options_.size;
  COVEY_CHECK(owner < size && rank < size && stripe < stripes());
  SpreadNode node;
  switch (options_.algorithm) {
    case Algorithm::kDirect:
      if (rank != owner) {
        node.parent = owner;
      } else {
        // Different owners begin with different members.
        for (uint32_t i = 1; i < size; ++i) node.children.push_back((owner + i) % size);
      }
      return node;
    case Algorithm::kAutomatic:
    case Algorithm::kRing:
    case Algorithm::kMultiRing: {
      const uint32_t stride = strides_[stripe];
      const uint32_t next = (rank + stride) % size;
      if (next != owner) node.children.push_back(next);
      if (rank != owner) node.parent = (rank + size - stride) % size;
      return node;
    }
    default: {
      // The reduction tree reversed: the child that was added last has the most members behind it.
      const Links links = LinksOf(owner, rank);
      return {.parent = links.parent,
              .children = std::vector<uint32_t>(links.children.rbegin(), links.children.rend())};
    }
  }
}

bool HasReduction(CollectiveKind kind) {
  return kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kAllReduce ||
         kind == CollectiveKind::kBarrier;
}

bool HasSpreading(CollectiveKind kind) { return kind != CollectiveKind::kReduceScatter; }

std::vector<Section> SectionsOf(const Plan& plan, CollectiveKind kind,
                                std::span<const PartRange> parts, size_t element_count,
                                uint32_t root) {
  std::vector<Section> whole;  // not cut into stripes yet
  switch (kind) {
    case CollectiveKind::kBarrier:
      return {Section{}};
    case CollectiveKind::kBroadcast:
      whole.push_back({.owner = root, .stripe = 0, .range = {.first = 0, .count = element_count}});
      break;
    default: {
      // In an all-reduce the owner of a part does not matter, so one tree serves the whole tensor.
      const bool one_tree =
          kind == CollectiveKind::kAllReduce && plan.algorithm() == Algorithm::kTree;
      for (uint32_t owner = 0; owner < parts.size(); ++owner) {
        whole.push_back({.owner = one_tree ? 0 : owner, .stripe = 0, .range = parts[owner]});
      }
      std::stable_sort(whole.begin(), whole.end(), [](const Section& a, const Section& b) {
        return a.range.first < b.range.first;
      });
      break;
    }
  }
  std::vector<Section> sections;
  for (const Section& section : whole) {
    if (section.range.count == 0) continue;
    if (plan.stripes() == 1) {
      Section* last = sections.empty() ? nullptr : &sections.back();
      if (last != nullptr && last->owner == section.owner &&
          last->range.first + last->range.count == section.range.first) {
        last->range.count += section.range.count;
      } else {
        sections.push_back(section);
      }
      continue;
    }
    const std::vector<PartRange> stripes = EvenParts(section.range.count, plan.stripes());
    for (uint32_t stripe = 0; stripe < plan.stripes(); ++stripe) {
      if (stripes[stripe].count == 0) continue;
      sections.push_back({.owner = section.owner,
                          .stripe = stripe,
                          .range = {.first = section.range.first + stripes[stripe].first,
                                    .count = stripes[stripe].count}});
    }
  }
  return sections;
}

}  // namespace covey
