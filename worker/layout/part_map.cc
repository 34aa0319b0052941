// SPDX-License-Identifier: Apache-2.0
#include "worker/layout/part_map.h"

#include <algorithm>
#include <numeric>

#include "common/base/check.h"

namespace covey::worker {
namespace {

uint64_t ElementCount(const proto::Table& table) {
  const proto::Shard& last = table.shards(table.shards_size() - 1);
  return last.first_element() + last.element_count();
}

// Each member's quota of `amount` such that the least-loaded members become level; scaled by the
// number of members that get any, so that it is a whole number.
struct Quotas {
  uint64_t scale = 1;
  std::vector<uint64_t> scaled;
};

Quotas LevelQuotas(const std::vector<uint64_t>& loads, uint64_t amount) {
  std::vector<uint64_t> sorted = loads;
  std::sort(sorted.begin(), sorted.end());
  // The level is (amount + sum of the k smallest loads) / k, for the k members below it.
  uint64_t k = 0;
  uint64_t filled = amount;
  while (k < sorted.size() && (k == 0 || sorted[k] * k < filled)) filled += sorted[k++];
  Quotas quotas{.scale = k, .scaled = {}};
  for (const uint64_t load : loads) {
    quotas.scaled.push_back(load * k < filled ? filled - load * k : 0);
  }
  return quotas;
}

// Assigns each shard to the member whose range of the table contains the shard's middle.
std::vector<TablePart> Cut(const proto::Table& table, std::vector<uint64_t>& loads) {
  const Quotas quotas = LevelQuotas(loads, ElementCount(table));
  std::vector<TablePart> parts(loads.size());
  size_t member = 0;
  uint64_t stretch_end = quotas.scaled[0];
  for (const proto::Shard& shard : table.shards()) {
    const uint64_t twice_middle = 2 * shard.first_element() + shard.element_count();
    while (member + 1 < parts.size() && twice_middle * quotas.scale >= 2 * stretch_end) {
      stretch_end += quotas.scaled[++member];
    }
    TablePart& part = parts[member];
    if (part.shard_count == 0) {
      part.first_shard = ShardIndex(shard.index());
      part.elements.first = shard.first_element();
    }
    ++part.shard_count;
    part.elements.count += shard.element_count();
    loads[member] += shard.element_count();
  }
  return parts;
}

}  // namespace

PartMap::PartMap(std::span<const proto::Table* const> tables, uint32_t members)
    : parts_(tables.size()) {
  COVEY_CHECK(members >= 1);
  std::vector<size_t> largest_first(tables.size());
  std::iota(largest_first.begin(), largest_first.end(), 0);
  std::stable_sort(largest_first.begin(), largest_first.end(), [&](size_t a, size_t b) {
    return ElementCount(*tables[a]) > ElementCount(*tables[b]);
  });
  // Counted in elements: every table is float32, so bytes are proportional.
  std::vector<uint64_t> loads(members, 0);
  for (const size_t table : largest_first) parts_[table] = Cut(*tables[table], loads);
}

std::vector<PartRange> PartMap::ranges_of(size_t table) const {
  std::vector<PartRange> ranges;
  for (const TablePart& part : parts_[table]) ranges.push_back(part.elements);
  return ranges;
}

}  // namespace covey::worker
