// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/cluster/ids.h"

namespace covey {

// A group that contracts wait for, from its first step on.
struct LiveGroup {
  GroupId id;
  Step first_step{1};
  friend bool operator==(const LiveGroup&, const LiveGroup&) = default;
};

}  // namespace covey
