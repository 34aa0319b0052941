// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey export`: writes the model of a running cluster to a file.
int ExportCommand(int count, const char* const* arguments);

}  // namespace covey::cli
