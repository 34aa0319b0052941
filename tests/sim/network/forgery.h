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

// Whether hostile workers and clients send such messages: those of the data plane, but for replies
// to readers, because checkers take what is delivered for what a server has said
// (client/engine/request_engine_test has forged replies).
bool IsForgeable(const Message& message);
// Whether a member of the sender's group may send such a message, and is believed: it is one inside
// the group, or the group's push.
bool IsOfGroup(const Message& message);
// Makes of somebody's message one that claims to be the same, or the next one of its sequence, with
// other values, which would do damage if it were believed. Leaves the sender to the caller.
// Precondition: IsForgeable(message), and no other message shares its frames.
void Forge(Random& random, Message& message);

}  // namespace covey::sim
