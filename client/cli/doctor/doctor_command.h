// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey doctor`: finds what is wrong with this machine and with a cluster, and says what to do.
int DoctorCommand(int count, const char* const* arguments);

}  // namespace covey::cli
