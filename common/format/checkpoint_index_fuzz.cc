// SPDX-License-Identifier: Apache-2.0
// Indices of models that consist of several files.
#include "common/format/checkpoint_index.h"

#include <string>

#include "absl/strings/match.h"
#include "common/base/check.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {

std::vector<std::string> FuzzSeeds() {
  return {
      R"({"metadata": {"total_size": 548105171}, "weight_map": )"
      R"({"h.0.weight": "model-00001-of-00002.safetensors", "b": "model.safetensors"}})",
      R"({"weight_map": {"\u00e9\n": "m"}, "else": [1, {"weight_map": 2}, null, -1.5e3]})",
  };
}

bool FuzzOne(std::span<const uint8_t> input) {
  const auto files = ReadCheckpointIndex(FuzzText(input));
  if (!files.ok()) {
    COVEY_CHECK(files.status().code() == absl::StatusCode::kInvalidArgument);
    return false;
  }
  COVEY_CHECK(!files->empty());
  for (const auto& [tensor, file] : *files) {
    COVEY_CHECK(!file.empty() && !absl::StrContains(file, '/') && file != "..");
  }
  return true;
}

}  // namespace covey
