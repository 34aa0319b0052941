// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "proto/scheduler.pb.h"

namespace covey::cli {

// The state of a cluster as the page shows it, without events and history; the same judgement as
// `covey status`. Pure. About 250 bytes for each node, and 40 for each replica.
nlohmann::ordered_json DashboardJson(const proto::StatusReply& status);

}  // namespace covey::cli
