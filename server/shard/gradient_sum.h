// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/buffer_pool.h"
#include "common/table/round_mean.h"
#include "server/replication/gradient.h"

namespace covey::server {

// A sum of gradients, in the order in which they are added. A single gradient is not copied: it
// stays in the frame that it arrived in, until Keep. Those of a sparse shard are held as they came,
// and added up by key at the end.
//
// Actor-confined. The memory for a sum of two or more of a dense shard comes from `spares`, which
// outlives the sum.
class GradientSum {
 public:
  // `row_width` as GradientShape.
  GradientSum(BufferPool& spares, size_t row_width) : spares_(&spares), row_width_(row_width) {}

  // Preconditions: of a dense shard, as many elements as those added before (checked); at least one
  // sample.
  void Add(const GradientBuffers& gradient, uint64_t samples);
  // To be called before the sum is kept beyond a call that has added to it: a lent frame
  // (Buffer::Lend) is copied.
  void Keep();
  // To be called after the last Add, and before the sum is used. The sum divided by all samples is
  // the mean, as an update takes it, of either kind.
  void Finish(RoundMean mean);

  bool empty() const { return parts_.empty(); }
  size_t bytes() const;  // held
  // The elements of the sum so far; before Finish, of the newest gradient of a sparse shard.
  // Another handle keeps the bytes from being reused. Empty when nothing was added.
  Buffer elements() const { return empty() ? Buffer() : parts_.back().gradient.elements; }
  // Precondition: finished.
  Gradient gradient() const { return empty() ? Gradient() : parts_.back().gradient.spans(); }
  // Its encoded form, in float32. Precondition: finished.
  EncodedGradient Encoded() const;

 private:
  struct Part {
    GradientBuffers gradient;
    uint64_t samples = 0;
  };
  void AddElements(const Buffer& elements);

  BufferPool* spares_;
  size_t row_width_;
  // Of a dense shard the sum so far; of a sparse one, until the end, all gradients.
  std::vector<Part> parts_;
  bool is_spare_ = false;  // otherwise the frame of the only gradient
};

}  // namespace covey::server
