// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "proto/view.pb.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// A shard of the table has lost what it held. If a call gives the table its initial values, that
// call gives those of all its tables again: they get the epoch of the change. Initializations draws
// the whole.
void RestartInitialization(const proto::ClusterView& view, const proto::Table& table,
                           Transaction& change);

}  // namespace covey::scheduler
