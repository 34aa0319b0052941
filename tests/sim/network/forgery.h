// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/base/random.h"
#include "common/net/message.h"

namespace covey::sim {

// What a hostile process can send. It knows the messages of others, and every field and frame of
// its own is as it likes, but the incarnation: it does not know those of others, and a seal shows
// whose it is. So it speaks in its own name, or, as is possible in a job without keys, in that of
// another node under its own incarnation. Hostile processes are a client, and a process that has
// not registered. They run no honest program: what they did to themselves could not be told from a
// defect.
//
// Not forged: what a hostile process may do in its own name (its own pushes), and what workers are
// believed about, since a worker's pushes count for the group that it names (docs/SECURITY.md).
// Calls to the scheduler are checked before an actor sees them, and are not simulated.

// Forged requests are numbered from here on; no honest one gets there.
inline constexpr uint64_t kForgedRequests = uint64_t{1} << 60;

// Whether hostile processes send such messages: all between data ports, and views.
bool IsForgeable(const Message& message);
// Makes of somebody's message one that claims to be the same, or the next one of its sequence, or
// one with numbers near 2^63, with other values, which would do damage if it were believed. Leaves
// the sender to the caller. Precondition: IsForgeable(message), and no other message shares its
// frames.
void Forge(Random& random, Message& message);

}  // namespace covey::sim
