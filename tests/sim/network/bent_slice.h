// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/net/message.h"

namespace covey::sim {

// A planted bug of the network: data arrives with a flipped bit and a matching checksum, as if
// checksums were not checked. It concerns slices of a step's results, and pushes of plain clients.

// Whether the bug concerns the message. Pure.
bool IsBendable(const Message& message);
// Flips a bit of the message's first number. Precondition: IsBendable(message).
void Bend(Message& message);

}  // namespace covey::sim
