// SPDX-License-Identifier: Apache-2.0
#include "common/base/random.h"

#include <sys/random.h>

#include "common/base/check.h"

namespace covey {

uint64_t RandomFromSystem() {
  uint64_t value = 0;
  COVEY_CHECK(getrandom(&value, sizeof(value), 0) == sizeof(value));
  return value;
}

}  // namespace covey
