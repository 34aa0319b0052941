#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/cluster/contract.h"
#include "common/runtime/config_file.h"
#include "proto/tensor.pb.h"

namespace covey::examples {

// What several example programs let their users choose. The fields outlive `options`.

// --contract bsp, ssp:2, async, buffered, local:16, ... (common/cluster/contract.h).
void AddContract(ConfigFile& options, Contract* field);

// --wire fp32, fp16, bf16 or int8: how gradients travel.
void AddWireFormat(ConfigFile& options, proto::WireFormat* field);

// INVALID_ARGUMENT: anything else; the message lists what is known.
absl::StatusOr<proto::WireFormat> ParseWireFormat(absl::string_view text);
std::string WireFormatName(proto::WireFormat format);

// INVALID_ARGUMENT "--flag is 7; choose 1 to 5" unless low <= value <= high; NaN is in no range.
absl::Status InRange(absl::string_view flag, double value, double low, double high);

}  // namespace covey::examples
