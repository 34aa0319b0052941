// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "common/cluster/ids.h"

namespace covey {

// A group that contracts wait for, from its first step on.
struct LiveGroup {
  GroupId id;
  Step first_step{1};
  // The shard has lost what it had of the group: readers do not wait for it while its clock is not
  // above this one, with which the shard began again. Nothing: the shard has lost nothing of it.
  std::optional<Step> lost_after = std::nullopt;
  friend bool operator==(const LiveGroup&, const LiveGroup&) = default;
};

}  // namespace covey
