// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey events`: the decisions of a scheduler, and with --follow those to come.
int EventsCommand(int count, const char* const* arguments);

}  // namespace covey::cli
