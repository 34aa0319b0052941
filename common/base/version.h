// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey {

// The version that every program prints for `--version`. The first heading of docs/CHANGELOG.md
// names the same one (tests/style/version_test.py).
inline constexpr char kVersion[] = "0.2.0";

}  // namespace covey
