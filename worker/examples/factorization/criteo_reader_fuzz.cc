// SPDX-License-Identifier: Apache-2.0
// Data sets in the format of Criteo; compressed or not.
#include "worker/examples/factorization/criteo_reader.h"

#include <string>

#include "common/base/check.h"
#include "common/fuzz/fuzz_file.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {

std::vector<std::string> FuzzSeeds() {
  const std::string empty(24, '\t');
  return {
      "1\t1\t-2\t300" + std::string(11, '\t') + "05db9164\t8efede7f" + empty + "\n",
      "0" + std::string(39, '\t') + "\n1" + std::string(39, '\t') + "\n",
  };
}

bool FuzzOne(std::span<const uint8_t> input) {
  const FuzzFile file(input);
  const auto samples = factorization::ReadCriteo(file.path());
  if (!samples.ok()) {
    COVEY_CHECK(!samples.status().message().empty());
    return false;
  }
  COVEY_CHECK(samples->size() > 0);
  return true;
}

}  // namespace covey
