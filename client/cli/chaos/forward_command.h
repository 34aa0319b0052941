// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey chaos forward PORT...`: a Forwarder to these ports of this machine, as a process of its
// own that can be stopped. Prints where it listens, in the same order: "forwards from PORT PORT".
// For experiments; people do not need it.
int ForwardCommand(int count, const char* const* arguments);

}  // namespace covey::cli
