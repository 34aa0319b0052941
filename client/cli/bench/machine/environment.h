// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace covey::cli {

// Everything that figures depend on besides the program, by name: version, compiler and its flags,
// processor model, cores, caches, memory, kernel, huge pages of private and shared memory,
// congestion control, governor, and the programs of peers that are installed. "unknown": this
// machine does not tell. Reads /proc, /sys and PATH.
std::vector<std::pair<std::string, std::string>> ReadEnvironment();

}  // namespace covey::cli
