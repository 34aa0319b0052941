// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/choices.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace covey::examples {
void AddContract(ConfigFile& options, Contract* field) {
  options.Add(
      "contract",
      [field](absl::string_view text) -> absl::Status {
        COVEY_ASSIGN_OR_RETURN(*field, ParseContract(text));
        return absl::OkStatus();
      },
      [field] { return ContractName(*field); },
      "contract between groups: bsp, ssp:N, async, buffered, buffered:K or local:H");
}

void AddWireFormat(ConfigFile& options, WireFormat* field) {
  options.Add(
      "wire",
      [field](absl::string_view text) -> absl::Status {
        COVEY_ASSIGN_OR_RETURN(*field, ParseWireFormat(text));
        return absl::OkStatus();
      },
      [field] { return std::string(WireFormatName(*field)); },
      "format of gradients on the wire: float32, float16, bfloat16, scaled-float16, int8, float8 "
      "or topk");
}

absl::Status InRange(absl::string_view flag, double value, double low, double high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " is ", value, "; choose ", low, " to ", high));
}

}  // namespace covey::examples
