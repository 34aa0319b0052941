// SPDX-License-Identifier: Apache-2.0
#include "server/sparse/row_sums.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "common/base/check.h"
#include "common/tensor/kernels.h"

namespace covey::server {
namespace {

// The next key of a gradient. Of equal keys, that of the earlier gradient comes first.
struct Head {
  uint64_t key;
  size_t gradient;

  bool operator>(const Head& other) const {
    return std::pair(key, gradient) > std::pair(other.key, other.gradient);
  }
};

}  // namespace

void SumByKey(std::span<const KeyedRows> gradients, size_t width, RowSums& sums) {
  auto& [keys, rows, samples] = sums;
  keys.clear();
  rows.clear();
  samples.clear();
  std::vector<Head> heads;  // a heap, the least at its front
  std::vector<size_t> next(gradients.size(), 0);
  size_t keys_in_all = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    COVEY_CHECK(gradients[i].rows.size() == gradients[i].keys.size() * width);
    keys_in_all += gradients[i].keys.size();
    if (!gradients[i].keys.empty()) heads.push_back({gradients[i].keys[0], i});
  }
  std::make_heap(heads.begin(), heads.end(), std::greater<>());
  keys.reserve(keys_in_all);
  rows.reserve(keys_in_all * width);
  samples.reserve(keys_in_all);
  while (!heads.empty()) {
    std::pop_heap(heads.begin(), heads.end(), std::greater<>());
    const auto [key, i] = heads.back();
    heads.pop_back();
    const std::span<const float> row = gradients[i].rows.subspan(next[i] * width, width);
    if (keys.empty() || keys.back() != key) {
      keys.push_back(key);
      rows.insert(rows.end(), row.begin(), row.end());
      samples.push_back(0);
    } else {
      AddInto(std::span(rows).last(width), row);
    }
    samples.back() += gradients[i].samples;
    if (++next[i] == gradients[i].keys.size()) continue;
    heads.push_back({gradients[i].keys[next[i]], i});
    std::push_heap(heads.begin(), heads.end(), std::greater<>());
  }
}

void StandForAll(uint64_t samples, size_t width, RowSums& sums) {
  for (size_t i = 0; i < sums.keys.size(); ++i) {
    COVEY_CHECK(sums.samples[i] > 0);
    if (sums.samples[i] == samples) continue;
    const auto factor =
        static_cast<float>(static_cast<double>(samples) / static_cast<double>(sums.samples[i]));
    for (float& element : std::span(sums.rows).subspan(i * width, width)) element *= factor;
  }
}

}  // namespace covey::server
