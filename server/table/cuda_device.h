// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "server/table/device.h"

namespace covey::server {

// The GPU that CUDA numbers 0; CUDA_VISIBLE_DEVICES chooses another one. Its work is done in the
// order of the calls of one thread: each data loop opens one of its own, and the GPU's memory is
// shared.
//
// UNIMPLEMENTED: this program was built without CUDA. FAILED_PRECONDITION: this machine has no GPU
// that the program can use. Both say what to do.
absl::StatusOr<std::shared_ptr<Device>> OpenCudaDevice();

}  // namespace covey::server
