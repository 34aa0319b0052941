// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace covey::server {

// Bytes that may wait in one data loop. The owner counts them. The budget asks for a new count once
// per kRequestsPerCount requests, which costs little and still notices a growing queue.
//
// Actor-confined.
class QueueBudget {
 public:
  static constexpr uint64_t kRequestsPerCount = 16;

  explicit QueueBudget(size_t bytes_max) : bytes_max_(bytes_max) {}

  // RESOURCE_EXHAUSTED: more bytes wait than allowed. To be called for each request.
  absl::Status Check(absl::FunctionRef<size_t()> count);
  // The owner has counted for another reason.
  void SetCount(size_t bytes);

 private:
  const size_t bytes_max_;
  size_t bytes_ = 0;
  uint64_t requests_since_count_ = 0;
};

}  // namespace covey::server
