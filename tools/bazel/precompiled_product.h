// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey {

// Whether the compiler loaded the precompiled headers for a file of the product.
bool ProductCodeIsPrecompiled();

}  // namespace covey
