// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "common/base/buffer.h"
#include "common/base/buffer_pool.h"

namespace covey::server {

// A sum of gradients, in the order in which they are added. A single gradient is not copied: it
// stays in the frame that it arrived in, until Keep.
//
// Actor-confined. The memory for a sum of two or more comes from `spares`, which outlives the sum.
class GradientSum {
 public:
  explicit GradientSum(BufferPool& spares) : spares_(&spares) {}

  // Precondition (checked): as many elements as those added before.
  void Add(const Buffer& gradient);
  // To be called before the sum is kept beyond a call that has added to it: a lent frame
  // (Buffer::Lend) is copied.
  void Keep();

  // The same bytes under a handle, which keeps them from being reused.
  const Buffer& buffer() const { return sum_; }
  std::span<const float> elements() const { return sum_.As<float>(); }

 private:
  void CopyToSpare();

  BufferPool* spares_;
  Buffer sum_;
  bool is_spare_ = false;  // otherwise the frame of the only gradient, or nothing
};

}  // namespace covey::server
