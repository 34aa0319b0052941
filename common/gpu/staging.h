// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace covey::gpu {

// Copies from host memory to the GPU by way of page-locked slabs, so that the caller need not wait
// until the GPU has done its earlier work. Only a copy that finds all slabs in flight waits.
//
// May be used by any one thread at a time; hand it to another only after Wait().
class Staging {
 public:
  // RESOURCE_EXHAUSTED when no page-locked memory is left, INTERNAL when the GPU fails.
  static absl::StatusOr<Staging> Create();
  Staging(Staging&&) noexcept;
  Staging& operator=(Staging&&) noexcept;
  ~Staging();

  // The host's floats may change after the call; the GPU's are there for all later work of this
  // thread. INTERNAL as Wait(). Precondition: equal sizes.
  absl::Status CopyIn(std::span<const float> host, std::span<float> gpu);

 private:
  struct Slabs;
  explicit Staging(std::unique_ptr<Slabs> slabs);

  std::unique_ptr<Slabs> slabs_;
};

}  // namespace covey::gpu
