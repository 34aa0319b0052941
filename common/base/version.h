// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey {

// What `--version` of every program says. The first heading of docs/CHANGELOG.md names the same
// version (tests/style/version_test.py).
inline constexpr char kVersion[] = "0.1.0";

}  // namespace covey
