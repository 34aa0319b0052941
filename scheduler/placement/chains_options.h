// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"

namespace covey::scheduler {

// The reaction to a shard whose content no server has any more.
enum class OnLoss {
  kRestore,    // it begins with its part of the newest snapshot, or anew where that has none
  kBeginAnew,  // it begins with the table's first values
  kStop        // nothing; the job is to end
};

// How long chains wait, and what they do about losses. A value.
struct ChainsOptions {
  OnLoss on_loss = OnLoss::kRestore;
  // How long shards whose last server has departed wait for a server of the same rank. After this
  // duration they are re-initialized on other servers. With a longer wait, a restarted server gets
  // its shards back; with a shorter one, users of the shards wait less.
  absl::Duration replacement_wait = absl::Seconds(10);
};

}  // namespace covey::scheduler
