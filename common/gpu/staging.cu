// SPDX-License-Identifier: Apache-2.0
#include "common/gpu/staging.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include "common/gpu/memory.h"

namespace covey::gpu {
namespace {

constexpr size_t kSlabs = 4;
constexpr size_t kSlabFloats = 1 << 18;

}  // namespace

struct Staging::Slabs {
  struct Slab {
    float* floats = nullptr;
    cudaEvent_t is_read = nullptr;  // the GPU has read the slab
  };

  Slabs() = default;
  Slabs(const Slabs&) = delete;
  ~Slabs() {
    for (const Slab& slab : slabs) {
      if (slab.is_read != nullptr) {
        cudaEventSynchronize(slab.is_read);
        cudaEventDestroy(slab.is_read);
      }
      if (slab.floats != nullptr) cudaFreeHost(slab.floats);
    }
  }

  Slab slabs[kSlabs];
  size_t next = 0;
};

Staging::Staging(std::unique_ptr<Slabs> slabs) : slabs_(std::move(slabs)) {}
Staging::Staging(Staging&&) noexcept = default;
Staging& Staging::operator=(Staging&&) noexcept = default;
Staging::~Staging() = default;

absl::StatusOr<Staging> Staging::Create() {
  auto slabs = std::make_unique<Slabs>();
  for (Slabs::Slab& slab : slabs->slabs) {
    const cudaError_t error =
        cudaHostAlloc(&slab.floats, kSlabFloats * sizeof(float), cudaHostAllocDefault);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // clears the error: Wait() must not report it again
      return absl::ResourceExhaustedError(
          "no page-locked memory is left on this host; end other programs or raise `ulimit -l`");
    }
    cudaEventCreateWithFlags(&slab.is_read, cudaEventDisableTiming);
  }
  if (absl::Status status = Wait(); !status.ok()) return status;
  return Staging(std::move(slabs));
}

absl::Status Staging::CopyIn(std::span<const float> host, std::span<float> gpu) {
  while (!host.empty()) {
    const size_t count = std::min(kSlabFloats, host.size());
    const Slabs::Slab& slab = slabs_->slabs[slabs_->next];
    slabs_->next = (slabs_->next + 1) % kSlabs;
    // An event that was never recorded is over.
    if (cudaEventSynchronize(slab.is_read) != cudaSuccess) return Wait();
    std::memcpy(slab.floats, host.data(), count * sizeof(float));
    if (cudaMemcpyAsync(gpu.data(), slab.floats, count * sizeof(float), cudaMemcpyHostToDevice,
                        cudaStreamPerThread) != cudaSuccess ||
        cudaEventRecord(slab.is_read, cudaStreamPerThread) != cudaSuccess) {
      return Wait();
    }
    host = host.subspan(count);
    gpu = gpu.subspan(count);
  }
  return absl::OkStatus();
}

}  // namespace covey::gpu
