// SPDX-License-Identifier: Apache-2.0
#include "client/engine/shard_request.h"

#include <algorithm>

#include "common/base/check.h"

namespace covey::client {
namespace {

using State = ShardRequest::State;

constexpr State kAfterBackingOff[] = {State::kQueued, State::kReceived, State::kStranded,
                                      State::kOver};
constexpr State kAfterQueued[] = {State::kBackingOff, State::kInFlight, State::kReceived,
                                  State::kStranded, State::kOver};
constexpr State kAfterInFlight[] = {State::kBackingOff, State::kReceived, State::kStranded,
                                    State::kOver};
constexpr State kAfterReceived[] = {State::kStranded, State::kOver};
constexpr State kAfterStranded[] = {State::kResending, State::kReceived, State::kOver};
constexpr State kAfterResending[] = {State::kUnconfirmed, State::kStranded, State::kOver};
constexpr State kAfterUnconfirmed[] = {State::kReceived, State::kStranded, State::kOver};

}  // namespace

std::span<const State> SuccessorsOf(State state) {
  switch (state) {
    case State::kBackingOff:
      return kAfterBackingOff;
    case State::kQueued:
      return kAfterQueued;
    case State::kInFlight:
      return kAfterInFlight;
    case State::kReceived:
      return kAfterReceived;
    case State::kStranded:
      return kAfterStranded;
    case State::kResending:
      return kAfterResending;
    case State::kUnconfirmed:
      return kAfterUnconfirmed;
    case State::kOver:
      return {};
  }
  return {};
}

absl::string_view NameOf(State state) {
  switch (state) {
    case State::kBackingOff:
      return "kBackingOff";
    case State::kQueued:
      return "kQueued";
    case State::kInFlight:
      return "kInFlight";
    case State::kReceived:
      return "kReceived";
    case State::kStranded:
      return "kStranded";
    case State::kResending:
      return "kResending";
    case State::kUnconfirmed:
      return "kUnconfirmed";
    case State::kOver:
      return "kOver";
  }
  return "?";
}

void ShardRequest::MoveTo(State next) {
  const std::span<const State> allowed = SuccessorsOf(state_);
  COVEY_CHECK(std::find(allowed.begin(), allowed.end(), next) != allowed.end());
  state_ = next;
}

bool IsRetryable(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

}  // namespace covey::client
