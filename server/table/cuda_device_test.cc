// SPDX-License-Identifier: Apache-2.0

// Shards on a GPU against shards in host memory; and, where there is none, the errors.

#include "server/table/cuda_device.h"

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/buffer_pool.h"
#include "common/base/random.h"
#include "gtest/gtest.h"
#include "server/table/dense_shard.h"
#include "server/table/device_memory.h"
#include "server/table/host_memory.h"
#include "server/table/table_memory.h"

namespace covey::server {
namespace {

// More than one slab of the staging memory, and no multiple of it.
constexpr size_t kElements = 700'001;

TEST(CudaDevice, HoldsTheBitsOfHostMemoryOrSaysWhatToDo) {
  const absl::StatusOr<std::shared_ptr<Device>> device = OpenCudaDevice();
  if (!device.ok()) {
    EXPECT_TRUE(absl::IsUnimplemented(device.status()) ||
                absl::IsFailedPrecondition(device.status()))
        << device.status();
    EXPECT_NE(device.status().message().find("--table-memory host"), std::string::npos);
    GTEST_SKIP() << device.status().message();
  }
  BufferPool device_spares(1 << 20), host_spares(1 << 20);
  DeviceMemory memory(**device, device_spares);
  HostMemory host(host_spares);
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kNesterov,
        OptimizerKind::kAdagrad, OptimizerKind::kAdam, OptimizerKind::kDelayedNesterov}) {
    SCOPED_TRACE(OptimizerName(kind));
    const DenseShardConfig config = {
        .element_count = kElements,
        .initializer = {.kind = InitializerKind::kNormal, .a = 0, .b = 1, .seed = 3},
        .optimizer = {.kind = kind, .weight_decay = 0.01, .delay = 2},
        .learning_rate = {.base_rate = 0.1}};
    const auto on_gpu = DenseShard::Create(config, memory).value();
    const auto on_host = DenseShard::Create(config, host).value();
    Random random(5);
    std::vector<float> gradient(kElements);
    for (int update = 0; update < 5; ++update) {
      for (float& x : gradient) x = static_cast<float>(random.Uniform() * 2 - 1);
      ASSERT_TRUE(on_gpu->Apply(gradient, 4).ok());
      ASSERT_TRUE(on_host->Apply(gradient, 4).ok());
      if (update % 2 == 0) continue;  // Two updates without a read between.
      const auto same = [](const Buffer& a, const Buffer& b) {
        return std::memcmp(a.data(), b.data(), b.size()) == 0;
      };
      ASSERT_TRUE(same(on_gpu->Values(), on_host->Values()));
      for (size_t slot = 0; slot < on_host->slots(); ++slot) {
        ASSERT_TRUE(same(on_gpu->Slot(slot), on_host->Slot(slot)));
      }
    }
  }
}

}  // namespace
}  // namespace covey::server
