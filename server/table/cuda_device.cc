// SPDX-License-Identifier: Apache-2.0
#include "server/table/cuda_device.h"

#include <cstddef>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"

#ifdef COVEY_CUDA
#include "common/gpu/kernels.h"
#include "common/gpu/memory.h"
#include "common/gpu/staging.h"
#endif

namespace covey::server {

#ifdef COVEY_CUDA

namespace {

constexpr UpdateKernels kKernels = {.sgd = gpu::UpdateSgd,
                                    .momentum = gpu::UpdateMomentum,
                                    .nesterov = gpu::UpdateNesterov,
                                    .adagrad = gpu::UpdateAdagrad,
                                    .adam = gpu::UpdateAdam,
                                    .hold_delayed_nesterov = gpu::HoldDelayedNesterov,
                                    .release_delayed_nesterov = gpu::ReleaseDelayedNesterov};

class CudaArray final : public DeviceArray {
 public:
  explicit CudaArray(gpu::Floats memory) : DeviceArray(memory.span()), memory_(std::move(memory)) {}

 private:
  const gpu::Floats memory_;
};

// Ends the process where the GPU has failed: its tables are lost.
void EndUnless(const absl::Status& done) {
  if (done.ok()) return;
  LogError("device_failed", {{"reason", done.message()}});
  std::_Exit(1);  // the memory of the GPU cannot be released any more
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(gpu::Staging staging) : staging_(std::move(staging)) {}

  absl::StatusOr<std::unique_ptr<DeviceArray>> Allocate(size_t count) override {
    absl::StatusOr<gpu::Floats> memory = gpu::Floats::Allocate(count);
    if (absl::IsResourceExhausted(memory.status())) return memory.status();
    EndUnless(memory.status());
    return std::make_unique<CudaArray>(*std::move(memory));
  }
  void CopyIn(std::span<const float> host, std::span<float> device) override {
    EndUnless(staging_.CopyIn(host, device));
  }
  void CopyOut(std::span<const float> device, std::span<float> host) override {
    EndUnless(gpu::CopyOut(device, host));
  }
  const UpdateKernels& kernels() const override { return kKernels; }

 private:
  gpu::Staging staging_;
};

// Whether a kernel of this program runs there.
absl::Status TryKernel() {
  COVEY_ASSIGN_OR_RETURN(gpu::Floats floats, gpu::Floats::CopyOf(std::vector<float>{1, 0}));
  gpu::AllFinite(floats.span().first(1), floats.span().subspan<1, 1>());
  COVEY_ASSIGN_OR_RETURN(const std::vector<float> result, floats.CopyBack());
  if (result[1] == 1) return absl::OkStatus();
  return absl::InternalError("a kernel gave a wrong result");
}

}  // namespace

absl::StatusOr<std::shared_ptr<Device>> OpenCudaDevice() {
  if (!gpu::IsPresent()) {
    return absl::FailedPreconditionError(
        "--table-memory is 'cuda', and this machine has no GPU with a driver for this program; "
        "look at nvidia-smi, or choose --table-memory host");
  }
  if (const absl::Status status = TryKernel(); !status.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "--table-memory is 'cuda', and the GPU does not run this program: ", status.message(),
        "; it needs compute capability 8.0 or newer; or choose ", "--table-memory host"));
  }
  COVEY_ASSIGN_OR_RETURN(gpu::Staging staging, gpu::Staging::Create());
  return std::make_shared<CudaDevice>(std::move(staging));
}

#else

absl::StatusOr<std::shared_ptr<Device>> OpenCudaDevice() {
  return absl::UnimplementedError(
      "--table-memory is 'cuda', and this covey_server was built without CUDA; build it with "
      "`bazel build --config=opt --config=cuda //server:covey_server`, or choose "
      "--table-memory host");
}

#endif

}  // namespace covey::server
