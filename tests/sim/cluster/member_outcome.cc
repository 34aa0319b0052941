// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/cluster/member_outcome.h"

#include "absl/status/status.h"

namespace covey::sim {

Program::Outcome OutcomeOf(const Member& member) {
  switch (member.state()) {
    case Member::State::kFailed:
      // A worker whose group continues without it has no reason to return.
      return absl::IsFailedPrecondition(member.failure()) ? Program::Outcome::kDone
                                                          : Program::Outcome::kFailed;
    case Member::State::kLeft:
      return Program::Outcome::kDone;
    default:
      return Program::Outcome::kRunning;
  }
}

}  // namespace covey::sim
