// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"

namespace covey::scheduler {

// When groups change their members. A value.
struct GroupsOptions {
  // How long a late worker waits for others to make a new group with. After this duration it joins
  // an existing group.
  absl::Duration placement_wait = absl::Seconds(10);
  // How long after a member has left its group re-forms without it. Shorter than the time for which
  // members wait for a member that has left (2 s), and longer than the time within which all
  // members leave when training is over.
  absl::Duration regroup_after = absl::Seconds(1);
};

}  // namespace covey::scheduler
