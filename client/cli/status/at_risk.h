// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "proto/scheduler.pb.h"

namespace covey::cli {

// How much of a job would be lost if all its servers failed now. Pure.

// "1,240 updates of the last 2.1 s", "all 1,240 updates" where there is no snapshot, "no update".
std::string ShowAtRisk(const proto::AtRisk& at_risk);
// The sentence of `covey status`; empty for a scheduler of an earlier version.
std::string DurabilityLine(const proto::AtRisk& at_risk);

}  // namespace covey::cli
