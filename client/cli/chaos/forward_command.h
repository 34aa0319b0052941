// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey chaos forward PORT...`: a Forwarder to these ports of this machine, in a process of its
// own that can be stopped. Prints the ports where it listens, in the same order: "forwards from
// PORT PORT". For experiments; not meant for users.
int ForwardCommand(int count, const char* const* arguments);

}  // namespace covey::cli
