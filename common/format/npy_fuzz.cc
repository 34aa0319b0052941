// SPDX-License-Identifier: Apache-2.0
// Files of NumPy.
#include "common/format/npy.h"

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "common/base/check.h"
#include "common/format/testing/file_text.h"
#include "common/format/testing/golden_npy.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {

std::vector<std::string> FuzzSeeds() {
  std::vector<std::string> seeds;
  for (const auto& golden : kGoldenNpy) seeds.push_back(absl::HexStringToBytes(golden.file));
  return seeds;
}

bool FuzzOne(std::span<const uint8_t> input) {
  const absl::string_view file = FuzzText(input);
  const auto array = ReadNpy(file);
  if (!array.ok()) {
    COVEY_CHECK(array.status().code() == absl::StatusCode::kInvalidArgument);
    COVEY_CHECK(!array.status().message().empty());
    return false;
  }
  COVEY_CHECK(array->begin <= file.size());
  const std::string again =
      NpyHead(array->format, array->shape) + std::string(file.substr(array->begin));
  const auto reread = ReadNpy(again);
  COVEY_CHECK(reread.ok());
  COVEY_CHECK(reread->format == array->format && reread->shape == array->shape);
  return true;
}

}  // namespace covey
