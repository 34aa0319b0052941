// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/buffer_pool.h"
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

  // Precondition (checked): of a dense shard, as many elements as those added before.
  void Add(const GradientBuffers& gradient);
  // To be called before the sum is kept beyond a call that has added to it: a lent frame
  // (Buffer::Lend) is copied.
  void Keep();
  // To be called after the last Add, and before the sum is used.
  void Finish();

  bool empty() const { return parts_.empty(); }
  size_t bytes() const;  // held
  // The elements of the sum so far; before Finish, of the newest gradient of a sparse shard.
  // Another handle keeps the bytes from being reused. Empty when nothing was added.
  Buffer elements() const { return empty() ? Buffer() : parts_.back().elements; }
  // Precondition: finished.
  Gradient gradient() const { return empty() ? Gradient() : parts_.back().spans(); }
  // Its encoded form, in float32. Precondition: finished.
  EncodedGradient Encoded() const;

 private:
  void AddElements(const Buffer& elements);

  BufferPool* spares_;
  size_t row_width_;
  // Of a dense shard the sum so far; of a sparse one, until the end, all gradients.
  std::vector<GradientBuffers> parts_;
  bool is_spare_ = false;  // otherwise the frame of the only gradient
};

}  // namespace covey::server
