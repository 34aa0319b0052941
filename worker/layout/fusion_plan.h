// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/tensor/wire_format.h"
#include "worker/hybrid_options.h"

namespace covey::worker {

// What tensors must have in common to share a bucket.
struct FusionKind {
  WireFormat format = WireFormat::kFloat32;
  bool members_update = false;
  bool is_local = false;

  friend auto operator<=>(const FusionKind&, const FusionKind&) = default;
};

// A tensor as the plan sees it. Tensors of different kinds never share a bucket.
struct FusionTensor {
  uint64_t bytes = 0;
  FusionKind kind;
};

// Which tensors of a model travel together: small ones that the backward pass, which goes from the
// last tensor to the first, produces one soon after the other. The buckets, each with the positions
// of its tensors in the model, in growing order of their first tensor; every tensor is in one.
//
// Pure: members with the same tensors have the same buckets, without a word.
std::vector<std::vector<size_t>> PlanFusion(std::span<const FusionTensor> tensors,
                                            const FusionLimits& limits);

}  // namespace covey::worker
