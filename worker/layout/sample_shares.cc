// SPDX-License-Identifier: Apache-2.0
#include "worker/layout/sample_shares.h"

#include <algorithm>
#include <numeric>

#include "absl/numeric/int128.h"
#include "common/base/check.h"

namespace covey::worker {
namespace {

// The effective shares: even ones when the given ones are empty or all 0.
std::vector<uint64_t> Effective(std::span<const uint32_t> shares, uint32_t members) {
  COVEY_CHECK(members >= 1 && (shares.empty() || shares.size() == members));
  const bool none = std::all_of(shares.begin(), shares.end(), [](uint32_t s) { return s == 0; });
  if (none) return std::vector<uint64_t>(members, 1);
  return {shares.begin(), shares.end()};
}

}  // namespace

std::vector<uint64_t> DivideSamples(uint64_t batch, std::span<const uint32_t> shares,
                                    uint32_t members) {
  const std::vector<uint64_t> parts = Effective(shares, members);
  const uint64_t whole = std::accumulate(parts.begin(), parts.end(), uint64_t{0});
  std::vector<uint64_t> samples;
  std::vector<uint64_t> remainders;
  uint64_t left = batch;
  for (const uint64_t part : parts) {
    const absl::uint128 exact = absl::uint128(batch) * part;
    samples.push_back(static_cast<uint64_t>(exact / whole));
    remainders.push_back(static_cast<uint64_t>(exact % whole));
    left -= samples.back();
  }
  std::vector<uint32_t> order(members);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return remainders[a] > remainders[b]; });
  for (uint64_t i = 0; i < left; ++i) ++samples[order[i]];
  return samples;
}

double ShareOf(std::span<const uint32_t> shares, uint32_t members, uint32_t rank) {
  const std::vector<uint64_t> parts = Effective(shares, members);
  const uint64_t whole = std::accumulate(parts.begin(), parts.end(), uint64_t{0});
  return static_cast<double>(parts[rank]) / static_cast<double>(whole);
}

}  // namespace covey::worker
