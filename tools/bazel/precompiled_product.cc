// SPDX-License-Identifier: Apache-2.0
#include "tools/bazel/precompiled_product.h"

namespace covey {

bool ProductCodeIsPrecompiled() {
#ifdef COVEY_PRECOMPILED
  return true;
#else
  return false;
#endif
}

}  // namespace covey
