// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace covey::cli {

// What may stand in the file of a cluster, so that no shell, ssh or scp takes it for anything else.
// `at`: where it stands, "hosts.yaml:7". Pure. INVALID_ARGUMENT: where, what is wrong, and what to
// write.

// Letters, digits and `others` alone, and first no -. `what` is a noun: "host".
absl::Status CheckName(const std::string& at, absl::string_view what, absl::string_view name,
                       absl::string_view others);
// A name that the shell of a host sets as a variable.
bool IsVariable(absl::string_view name);
// An IP address of either kind.
bool IsAddress(const std::string& text);
// A folder of a host.
absl::Status CheckFolder(const std::string& at, absl::string_view folder);
absl::Status CheckPort(const std::string& at, uint32_t port);
// Flags of a scheduler or server, without those that follow from other parts of the file.
absl::Status CheckFlags(const std::string& at, const std::vector<std::string>& flags);

}  // namespace covey::cli
