// SPDX-License-Identifier: Apache-2.0
#include "server/table/sample_count.h"

#include <limits>

#include "absl/strings/str_cat.h"

namespace covey::server {

absl::Status CheckSamples(uint64_t samples, uint64_t so_far) {
  if (samples != 0 && samples <= std::numeric_limits<uint64_t>::max() - so_far) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("apply: the gradient stands for ", samples, " samples, after ", so_far,
                   " so far; push the number of training examples in the sum"));
}

}  // namespace covey::server
