// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey {

// From now on gRPC's errors, such as those about sockets and handshakes, are debug lines of this
// process's log, since our own errors say the same in one line; its last message before an abort is
// an error. What is less than an error is dropped, whatever GRPC_VERBOSITY and GRPC_TRACE say. For
// programs of ours, before they use gRPC: it holds for the whole process. Thread-safe.
void TakeLogOfGrpc();

}  // namespace covey
