#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace covey::worker {

// A tensor as the plan sees it. Tensors of different kinds never share a bucket.
struct FusionTensor {
  uint64_t bytes = 0;
  uint64_t kind = 0;
};

struct FusionLimits {
  // A tensor of so many bytes, or more, travels alone: its messages are large enough as they are.
  uint64_t tensor_bytes = 64 << 10;
  // Bytes of a bucket. Larger means fewer messages, and a longer wait for the bucket's last tensor.
  // 0 = every tensor travels alone.
  uint64_t bucket_bytes = 1 << 20;
  // Bytes of all tensors, large ones too, from a bucket's first to its last: so much of the
  // backward pass goes by, at most, before the bucket leaves.
  uint64_t span_bytes = 4 << 20;
};

// Which tensors of a model travel together: small ones that the backward pass, which goes from the
// last tensor to the first, produces one soon after the other. The buckets, each with the positions
// of its tensors in the model, in growing order of their first tensor; every tensor is in one.
//
// Pure: members with the same tensors have the same buckets, without a word.
std::vector<std::vector<size_t>> PlanFusion(std::span<const FusionTensor> tensors,
                                            const FusionLimits& limits);

}  // namespace covey::worker
