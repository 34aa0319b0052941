// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/base/random.h"
#include "common/net/message.h"

namespace covey::sim {

// What a hostile process of the job can send. It cannot pretend to be another node, because
// messages are sealed, but it knows the messages of others, and every field and frame of its own is
// as it likes.

// Requests that hostile processes forge are numbered from here on; no honest one gets there.
inline constexpr uint64_t kForgedRequests = uint64_t{1} << 60;

// Whether a hostile worker or client can send such a message: it is one of the data plane.
bool IsForgeable(const Message& message);
// Makes of somebody's message one that claims to be the same, or the next one of its sequence, with
// other values, which would do damage if it were believed. Leaves the sender to the caller.
// Precondition: IsForgeable(message), and no other message shares its frames.
void Forge(Random& random, Message& message);

}  // namespace covey::sim
