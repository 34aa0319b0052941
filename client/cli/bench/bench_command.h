// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey bench`: the cost of push, pull and a round trip on this machine, with one client and one
// server, beside a raw ZeroMQ pair measured in the same run.
int BenchCommand(int count, const char* const* arguments);

}  // namespace covey::cli
