// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "proto/table.pb.h"

namespace covey {

// The ranges of table.proto. INVALID_ARGUMENT: names table, field, value, and the allowed range;
// also for features that this version does not support yet. Pure. Only TableDefinition calls it.
absl::Status CheckTableSpec(const proto::TableSpec& spec);

}  // namespace covey
