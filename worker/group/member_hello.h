// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cluster/limits.h"
#include "common/cluster/link_costs.h"
#include "common/net/message.h"
#include "worker/group/member_progress.h"

namespace covey::worker {

// What one member says to all others when they meet (group.proto, MemberHello), and how it travels:
// in the frame beside a GroupHello. Bytes from outside are checked here against every limit, so
// that what comes out can be used as it is. Pure.

// Seconds of the shortest round trip to each member, by rank; 0 = not known, and to oneself.
using MemberDistances = std::vector<float>;

struct MemberState {
  Step finished;
  // In the middle of a step, and not ready since.
  bool interrupted = false;
  // Fingerprint of what it knows of all members' places beyond their labels; 0 = not of all.
  uint64_t known_places = 0;
  // The shortest round trip per level and size of probe.
  std::vector<LinkSample> round_trips;
  MemberProgress progress;
};

struct MemberHello {
  uint32_t rank = 0;
  std::variant<MemberDistances, MemberState> said;
};

// What the words of one member take in a frame, at most. Below kGroupHelloBytesMax.
size_t EncodedBytesMax(const MemberHello& hello);

// Puts the words into a frame beside the message's GroupHello, with its checksum. Precondition:
// together they take no more than kGroupHelloBytesMax.
void WriteHellos(std::span<const MemberHello* const> hellos, Message& message);

// The words of members of a group of this size.
//   DATA_LOSS: the frame was damaged.
//   INVALID_ARGUMENT: the words are not those of such members, or exceed a limit; says which.
absl::StatusOr<std::vector<MemberHello>> ReadHellos(const Message& message, uint32_t group_size);

}  // namespace covey::worker
