// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "proto/scheduler.pb.h"

namespace covey::scheduler {

// An item as tests write it.
inline proto::WorkItem Item(uint64_t pass, uint64_t first, uint64_t count) {
  proto::WorkItem item;
  item.set_pass(pass);
  item.set_first(first);
  item.set_count(count);
  return item;
}

}  // namespace covey::scheduler
