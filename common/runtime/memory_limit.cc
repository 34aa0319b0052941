// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/memory_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "common/runtime/control_groups.h"

namespace covey {

uint64_t MemoryLimit() {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page_bytes > 0) least = static_cast<uint64_t>(pages) * page_bytes;
  rlimit space = {};
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) {
    least = std::min<uint64_t>(least, space.rlim_cur);
  }
  return std::min(least, ReadOwnControlGroups().memory_bytes.value_or(least));
}

}  // namespace covey
