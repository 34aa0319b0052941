#pragma once

#include "absl/status/status.h"
#include "proto/table.pb.h"

namespace covey::scheduler {

// INVALID_ARGUMENT: names table, field, value, and what is allowed; also for what this version does
// not support yet. Pure.
absl::Status ValidateTableSpec(const proto::TableSpec& spec);

}  // namespace covey::scheduler
