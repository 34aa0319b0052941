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

// The properties that tensors must share to be in one bucket.
struct FusionKind {
  WireFormat format = WireFormat::kFloat32;  // of gradients
  WireFormat value_format = WireFormat::kFloat32;
  bool members_update = false;
  bool is_local = false;

  friend auto operator<=>(const FusionKind&, const FusionKind&) = default;
};

// The plan's view of a tensor. Tensors of different kinds never share a bucket.
struct FusionTensor {
  uint64_t bytes = 0;
  FusionKind kind;
};

// Decides which tensors of a model travel together: small ones that the backward pass, which goes
// from the last tensor to the first, produces shortly after one another. Returns the buckets, each
// with the positions of its tensors in the model, in growing order of their first tensor; every
// tensor is in one bucket.
//
// Pure: members with the same tensors compute the same buckets, without communication.
std::vector<std::vector<size_t>> PlanFusion(std::span<const FusionTensor> tensors,
                                            const FusionLimits& limits);

}  // namespace covey::worker
