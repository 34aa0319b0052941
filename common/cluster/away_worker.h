// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/time/time.h"
#include "common/cluster/ids.h"

namespace covey {

// A worker whose program is silent on purpose: it evaluates, saves or compiles.
struct AwayWorker {
  NodeId node;
  // For users: "evaluation".
  std::string reason;
  // It is back by then, by the clock of the process that holds this value.
  absl::Time until;
};

}  // namespace covey
