// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/contract/contract.h"
#include "common/runtime/config_file.h"
#include "common/tensor/wire_format.h"

namespace covey::examples {

// Options that several example programs share. The fields outlive `options`.

// --contract bsp, ssp:2, async, buffered, local:16, ... (common/contract/contract.h).
void AddContract(ConfigFile& options, Contract* field);

// --wire float32, float16, bfloat16, scaled-float16, int8, float8 or topk: the format of gradients
// on the wire.
void AddWireFormat(ConfigFile& options, WireFormat* field);
// --value-wire, with the same names except topk: the wire format of values on their way back.
void AddValueFormat(ConfigFile& options, WireFormat* field);

// INVALID_ARGUMENT "--flag is 7; choose 1 to 5" unless low <= value <= high; NaN is in no range.
absl::Status InRange(absl::string_view flag, double value, double low, double high);

}  // namespace covey::examples
