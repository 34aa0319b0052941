// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "proto/scheduler.pb.h"

namespace covey::cli {

// The output of `covey quarantine`: what was asked, the scheduler's reply, and the cluster after
// it. Pure.

// For humans. Says so where no table has a gate, because the quarantine has no effect then.
std::string QuarantineText(const proto::QuarantineRequest& request,
                           const proto::QuarantineReply& reply, const proto::ClusterView& view);
// "producer", "state" ("quarantined", "released"), "epoch", "reason" of a quarantine, "tables" (the
// names of those with a gate).
std::string QuarantineJson(const proto::QuarantineRequest& request,
                           const proto::QuarantineReply& reply, const proto::ClusterView& view);

}  // namespace covey::cli
