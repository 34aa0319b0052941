// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"

namespace covey::scheduler {

// How long chains wait. A value.
struct ChainsOptions {
  // How long shards whose last server has departed wait for a server of the same rank. After this
  // duration they are re-initialized on other servers. With a longer wait, a restarted server gets
  // its shards back; with a shorter one, users of the shards wait less.
  absl::Duration replacement_wait = absl::Seconds(10);
};

}  // namespace covey::scheduler
