// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/choices.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace covey::examples {
namespace {

void AddFormat(ConfigFile& options, const char* name, WireFormat* field, const char* help) {
  options.Add(
      name,
      [field](absl::string_view text) -> absl::Status {
        COVEY_ASSIGN_OR_RETURN(*field, ParseWireFormat(text));
        return absl::OkStatus();
      },
      [field] { return std::string(WireFormatName(*field)); }, help);
}

}  // namespace

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
  AddFormat(options, "wire", field,
            "format of gradients on the wire: float32, float16, bfloat16, scaled-float16, int8, "
            "float8 or topk");
}

void AddValueFormat(ConfigFile& options, WireFormat* field) {
  AddFormat(options, "value-wire", field,
            "format of values on their way back to workers: those of --wire except topk");
}

absl::Status InRange(absl::string_view flag, double value, double low, double high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " is ", value, "; choose ", low, " to ", high));
}

}  // namespace covey::examples
