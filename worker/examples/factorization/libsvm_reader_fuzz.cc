// SPDX-License-Identifier: Apache-2.0
// Data sets in the format of LIBSVM; compressed or not.
#include "worker/examples/factorization/libsvm_reader.h"

#include <string>

#include "common/base/check.h"
#include "common/fuzz/fuzz_file.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {

std::vector<std::string> FuzzSeeds() {
  return {
      "1 3:0.5 70000:1 # a comment\n-1 18446744073709551615:1e-3\n\n0 1:2\r\n",
      "+1\t5:1",
  };
}

bool FuzzOne(std::span<const uint8_t> input) {
  const FuzzFile file(input);
  const auto samples = factorization::ReadLibsvm(file.path());
  if (!samples.ok()) {
    COVEY_CHECK(!samples.status().message().empty());
    return false;
  }
  COVEY_CHECK(samples->size() > 0);
  return true;
}

}  // namespace covey
