// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey export-rows`: the rows of a sparse table as files for NumPy. Returns the exit code.
int ExportRowsCommand(int count, const char* const* arguments);

}  // namespace covey::cli
