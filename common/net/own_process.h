// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/net/message.h"

namespace covey {

// Whether a loop of the receiver's own process sent the message. It has crossed no transport, so it
// came over no connection; every transport marks the messages that it delivers with one
// (transport_conformance.h). Only such a message may tell an actor its view, its lease or its load.
//
// The wire refuses the bodies of these messages, whoever sends them (wire.h). This is the second
// fence, for carriers that do not encode messages, such as LoopbackTransport. Pure.
inline bool IsFromOwnProcess(const Message& message) { return message.connection == 0; }

}  // namespace covey
