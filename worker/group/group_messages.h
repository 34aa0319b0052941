// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "common/net/message.h"
#include "worker/group/group_round.h"

namespace covey::worker {

// The part that all messages between members of a group have in common. Pure.

inline void WriteRound(const GroupRound& round, proto::GroupRound& to) {
  to.set_group(round.group.value());
  to.set_generation(round.generation);
  to.set_attempt(round.attempt);
}

inline GroupRound ReadRound(const proto::GroupRound& from) {
  return {
      .group = GroupId(from.group()), .generation = from.generation(), .attempt = from.attempt()};
}

// What every message between members of a group says of itself.
struct GroupSender {
  GroupRound round;
  // Of the sender, as it says. Absent in an abort.
  std::optional<uint32_t> rank;
};
// nullopt: it is no message between members of a group.
inline std::optional<GroupSender> SenderOf(const Message& message) {
  const proto::Envelope& envelope = message.envelope;
  switch (envelope.body_case()) {
    case proto::Envelope::kGroupSlice:
      return GroupSender{ReadRound(envelope.group_slice().round()),
                         envelope.group_slice().from_rank()};
    case proto::Envelope::kGroupProbe:
      return GroupSender{ReadRound(envelope.group_probe().round()),
                         envelope.group_probe().from_rank()};
    case proto::Envelope::kGroupHello:
      return GroupSender{ReadRound(envelope.group_hello().round()),
                         envelope.group_hello().from_rank()};
    case proto::Envelope::kGroupAbort:
      return GroupSender{ReadRound(envelope.group_abort().round()), std::nullopt};
    default:
      return std::nullopt;
  }
}

}  // namespace covey::worker
