// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "proto/view.pb.h"

namespace covey {

// Whether snapshots have the table. A table that waits for its initial values holds nothing yet,
// and a job that continues the snapshot creates the table anew. Pure.
inline bool IsInSnapshots(const proto::Table& table) { return !table.has_initialization(); }

}  // namespace covey
