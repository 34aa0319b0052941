// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/gpu/memory.h"

namespace covey::gpu {

bool IsPresent() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

absl::Status Wait() {
  const cudaError_t waited = cudaStreamSynchronize(cudaStreamPerThread);
  const cudaError_t asked = cudaGetLastError();  // of a kernel that could not start
  const cudaError_t error = waited != cudaSuccess ? waited : asked;
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the GPU failed: ", cudaGetErrorString(error),
                                          "; look for Xid in the kernel's log and restart"));
}

absl::Status CopyOut(std::span<const float> gpu, std::span<float> host) {
  cudaMemcpyAsync(host.data(), gpu.data(), gpu.size_bytes(), cudaMemcpyDeviceToHost,
                  cudaStreamPerThread);
  return Wait();
}

absl::StatusOr<Floats> Floats::Allocate(size_t size) {
  float* memory = nullptr;
  if (size == 0) return Floats(memory, 0);
  const cudaError_t error = cudaMalloc(&memory, size * sizeof(float));
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // clears the error: Wait() must not report it again
    return absl::ResourceExhaustedError(
        absl::StrCat("the GPU has no ", size * sizeof(float),
                     " bytes free; end other programs on it (nvidia-smi lists them)"));
  }
  if (error == cudaSuccess) return Floats(memory, size);
  if (absl::Status status = Wait(); !status.ok()) return status;
  return absl::InternalError(absl::StrCat("the GPU failed: ", cudaGetErrorString(error)));
}

absl::StatusOr<Floats> Floats::CopyOf(std::span<const float> values) {
  absl::StatusOr<Floats> result = Allocate(values.size());
  if (!result.ok() || values.empty()) return result;
  cudaMemcpyAsync(result->memory_.get(), values.data(), values.size_bytes(), cudaMemcpyHostToDevice,
                  cudaStreamPerThread);
  if (absl::Status status = Wait(); !status.ok()) return status;
  return result;
}

absl::StatusOr<std::vector<float>> Floats::CopyBack() const {
  std::vector<float> result(size_);
  if (absl::Status status = CopyOut({memory_.get(), size_}, result); !status.ok()) return status;
  return result;
}

void Floats::Release::operator()(float* memory) const { cudaFree(memory); }

}  // namespace covey::gpu
