// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/load/kernel_load.h"

#include <memory>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/bench/limits/array_memory.h"
#include "client/cli/bench/limits/piece_loop.h"
#include "common/optimizer/kernels.h"

namespace covey::cli {
namespace {

constexpr uint64_t kShardBytes = 1 << 20;

// Values, gradient, and the optimizer's state: velocity, or both moments of Adam.
constexpr uint32_t kArrays = 4;

// The same part of all arrays.
struct Shard {
  std::span<const float> gradient;
  std::span<float> values, first, second;
};

struct Kernel {
  const char* name;
  // Arrays read and written for each update.
  double streams;
  void (*update)(const Shard& shard);
};

constexpr Kernel kKernels[] = {
    {.name = "sgd",
     .streams = 3,
     .update =
         [](const Shard& shard) {
           UpdateSgd({.learning_rate = 1e-6f}, shard.gradient, shard.values, shard.values);
         }},
    {.name = "momentum",
     .streams = 5,
     .update =
         [](const Shard& shard) {
           UpdateMomentum({.learning_rate = 1e-6f, .momentum = 0.9f}, shard.gradient, shard.values,
                          shard.values, InPlace(shard.first));
         }},
    {.name = "adam",
     .streams = 7,
     .update =
         [](const Shard& shard) {
           UpdateAdam({.rate = 1e-6f,
                       .epsilon = 1e-8f,
                       .beta1 = 0.9f,
                       .one_minus_beta1 = 0.1f,
                       .beta2 = 0.999f,
                       .one_minus_beta2 = 0.001f},
                      shard.gradient, shard.values, shard.values, InPlace(shard.first),
                      InPlace(shard.second));
         }},
};

Sample Run(const Kernel& kernel, const ArrayMemory& arrays, uint64_t bytes,
           absl::Duration duration) {
  return RunPieces({.bytes = bytes,
                    .duration = duration,
                    .moved_per_byte = kernel.streams,
                    .piece_bytes = kShardBytes},
                   [&](uint64_t offset, uint64_t size) {
                     const uint64_t first = offset / sizeof(float), count = size / sizeof(float);
                     kernel.update({.gradient = arrays.array(1).subspan(first, count),
                                    .values = arrays.array(0).subspan(first, count),
                                    .first = arrays.array(2).subspan(first, count),
                                    .second = arrays.array(3).subspan(first, count)});
                   });
}

}  // namespace

std::vector<Contender> MakeKernelLoad(uint64_t bytes, absl::Duration duration) {
  const auto arrays = std::make_shared<ArrayMemory>(bytes, kArrays);
  std::vector<Contender> contenders;
  for (const Kernel& kernel : kKernels) {
    contenders.push_back(
        {.rows = {Figure{.what = absl::StrCat("covey kernel ", kernel.name),
                         .transport = "memory",
                         .bytes = bytes,
                         .unit = "GB/s",
                         .repetitions = {},
                         .limits = {"memory stream"}}},
         .measure = [&kernel, arrays, bytes, duration]() -> absl::StatusOr<Sample> {
           return Run(kernel, *arrays, bytes, duration);
         }});
  }
  return contenders;
}

}  // namespace covey::cli
