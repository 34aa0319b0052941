// SPDX-License-Identifier: Apache-2.0
#include "server/sparse/eviction_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>

#include "common/base/random.h"
#include "common/cluster/limits.h"

namespace covey::server {
namespace {

// Entries of a part, at most about: a pass over them takes about a millisecond.
constexpr uint64_t kEntriesPerPart = 1 << 18;
// Entries of a part whose scores are looked at, at least, if there are as many.
constexpr uint64_t kSampleMin = 2048;

// Of rows, or of keys that wait.
struct Stock {
  Eviction::Of of = Eviction::Of::kRows;
  EvictBy by = EvictBy::kAge;
  uint64_t held = 0;    // by the shard
  uint64_t stay = 0;    // of these, in the update
  uint64_t coming = 0;  // with the update
  uint64_t max = 0;
};

// Whether less than 5 % are free.
bool IsNearlyFull(uint64_t held, uint64_t max) { return held > max - max / 20; }

// The bound below which about this share of the part orders, of what the update does not hold.
void SetBound(const SparseShard& shard, std::span<const uint64_t> keys, double share,
              uint64_t entries, Eviction& eviction) {
  const uint64_t sample_mask = std::bit_floor(std::max<uint64_t>(entries / kSampleMin, 1)) - 1;
  std::vector<Eviction::Order> sample;
  shard.VisitEntries(eviction, [&](const IndexEntry& entry, uint64_t mixed) {
    if ((MixBits(mixed ^ eviction.salt) & sample_mask) != 0) return;
    if (std::binary_search(keys.begin(), keys.end(), UnmixBits(mixed))) return;
    sample.push_back(Eviction::OrderOf(shard.ScoreOf(entry, eviction.by), mixed, eviction.salt));
  });
  std::sort(sample.begin(), sample.end());
  const size_t going = static_cast<size_t>(std::ceil(share * static_cast<double>(sample.size())));
  Eviction::Order bound(std::numeric_limits<uint32_t>::max(), std::numeric_limits<uint64_t>::max());
  if (going < sample.size()) bound = sample[going];
  std::tie(eviction.score, eviction.tie) = bound;
}

void Plan(const SparseShard& shard, std::span<const uint64_t> keys, const Stock& stock,
          std::vector<Eviction>& planned) {
  if (!IsNearlyFull(stock.held + stock.coming, stock.max)) return;
  // A bound from a sample of this size is right within 3.3 % of the rows, nearly always.
  const uint64_t error = stock.held <= kSampleMin ? 0 : stock.held / 25;
  const uint64_t room = stock.coming + error;
  const uint64_t wanted =
      std::min(stock.max - stock.max / 10, stock.max - std::min(room, stock.max));
  const uint64_t may_go = stock.held - stock.stay;
  const uint64_t surplus = std::min(stock.held - std::min(stock.held, wanted), may_go);
  if (surplus == 0) return;
  const double share = static_cast<double>(surplus) / static_cast<double>(may_go);
  // Keys are spread evenly, so each part has about as many entries and gives up as many.
  const uint64_t parts = std::bit_ceil((shard.entries() + kEntriesPerPart - 1) / kEntriesPerPart);
  const uint64_t needed = stock.held + room - std::min(stock.held + room, stock.max);
  const uint64_t steps = std::clamp<uint64_t>((needed * parts + surplus - 1) / surplus, 1, parts);
  const uint64_t salt = MixBits(shard.version());
  for (uint64_t i = 0; i < steps && planned.size() < kEvictionsPerRecordMax; ++i) {
    Eviction& eviction = planned.emplace_back();
    eviction.of = stock.of;
    eviction.by = stock.by;
    eviction.salt = salt;
    std::tie(eviction.first, eviction.last) = shard.PartOf((salt + i) % parts, parts);
    SetBound(shard, keys, share, shard.entries() / parts, eviction);
  }
}

}  // namespace

std::vector<Eviction> PlanEvictions(const SparseShard& shard, std::span<const uint64_t> keys) {
  std::vector<Eviction> planned;
  const SparseShardConfig& config = shard.config();
  const bool rows_may_go =
      config.evicts && IsNearlyFull(shard.rows() + keys.size(), config.rows_max);
  const bool pending_may_go = !config.admission.takes_all() &&
                              IsNearlyFull(shard.pending() + keys.size(), shard.pending_max());
  if (!rows_may_go && !pending_may_go) return planned;
  const SparseShard::Forecast forecast = shard.Foresee(keys);
  if (rows_may_go) {
    Plan(shard, keys,
         {.of = Eviction::Of::kRows,
          .by = config.evict_by,
          .held = shard.rows(),
          .stay = forecast.rows,
          .coming = forecast.new_rows,
          .max = config.rows_max},
         planned);
  }
  if (pending_may_go) {
    Plan(shard, keys,
         {.of = Eviction::Of::kPending,
          .by = EvictBy::kAge,
          .held = shard.pending(),
          .stay = forecast.pending,
          .coming = forecast.new_pending,
          .max = shard.pending_max()},
         planned);
  }
  return planned;
}

}  // namespace covey::server
