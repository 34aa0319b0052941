// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
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

// `kind` and the receiver are for the caller to fill in.
inline Message MakeProbe(const GroupRound& round, uint32_t from_rank) {
  Message message;
  proto::GroupProbe& probe = *message.envelope.mutable_group_probe();
  WriteRound(round, *probe.mutable_round());
  probe.set_from_rank(from_rank);
  return message;
}

// Why a round ends for all members.
enum class RoundEnd {
  kFailed,      // a member cannot go on
  kSuperseded,  // the group has a newer plan, and this round can never begin
};
// The receiver is for the caller to fill in.
inline Message MakeAbort(const GroupRound& round, RoundEnd end, absl::string_view reason) {
  Message message;
  proto::GroupAbort& abort = *message.envelope.mutable_group_abort();
  WriteRound(round, *abort.mutable_round());
  abort.set_reason(std::string(reason));
  if (end == RoundEnd::kSuperseded) abort.set_superseded(true);
  return message;
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
