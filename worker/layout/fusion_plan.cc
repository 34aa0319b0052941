// SPDX-License-Identifier: Apache-2.0
#include "worker/layout/fusion_plan.h"

#include <algorithm>
#include <map>
#include <utility>

namespace covey::worker {
namespace {

// A bucket that can still take tensors.
struct OpenBucket {
  std::vector<size_t> tensors;  // last of the model first
  uint64_t bytes = 0;
  uint64_t begin = 0;  // bytes that were produced before its first tensor
};

}  // namespace

std::vector<std::vector<size_t>> PlanFusion(std::span<const FusionTensor> tensors,
                                            const FusionLimits& limits) {
  std::vector<std::vector<size_t>> buckets;
  std::map<FusionKind, OpenBucket> open;  // by kind
  uint64_t produced = 0;
  for (size_t t = tensors.size(); t-- > 0;) {
    const uint64_t bytes = tensors[t].bytes;
    produced += bytes;
    if (bytes >= limits.tensor_bytes || limits.bucket_bytes == 0) {
      buckets.push_back({t});
      continue;
    }
    OpenBucket& bucket = open[tensors[t].kind];
    const bool fits =
        bucket.bytes + bytes <= limits.bucket_bytes && produced - bucket.begin <= limits.span_bytes;
    if (!fits && !bucket.tensors.empty()) {
      buckets.push_back(std::move(bucket.tensors));
      bucket = OpenBucket();
    }
    if (bucket.tensors.empty()) bucket.begin = produced - bytes;
    bucket.tensors.push_back(t);
    bucket.bytes += bytes;
  }
  for (auto& [kind, bucket] : open) buckets.push_back(std::move(bucket.tensors));
  for (std::vector<size_t>& bucket : buckets) std::reverse(bucket.begin(), bucket.end());
  std::sort(buckets.begin(), buckets.end());
  return buckets;
}

}  // namespace covey::worker
