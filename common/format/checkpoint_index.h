// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace covey {

// The index of a model that Hugging Face's libraries have saved as several safetensors files:
//
//   {"metadata": {"total_size": 548105171},
//    "weight_map": {"h.0.weight": "model-00001-of-00002.safetensors", …}}
//
// Pure.

// The name of the index in the model's folder.
inline constexpr char kCheckpointIndexName[] = "model.safetensors.index.json";

// Limits. An index beyond them is refused.
struct CheckpointIndexLimits {
  static constexpr uint64_t kTextBytes = 32 << 20;
};

// The file of each tensor, by the tensor's name; at least one. The files are names without a
// folder. Everything beside the "weight_map" is ignored, at any depth. INVALID_ARGUMENT: it is no
// such index; names the byte, or the tensor, and the reason. Memory in proportion to the map.
absl::StatusOr<std::map<std::string, std::string>> ReadCheckpointIndex(absl::string_view text);

}  // namespace covey
