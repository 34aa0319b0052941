// SPDX-License-Identifier: Apache-2.0
#include "client/engine/requests/shard_request.h"

#include "common/base/check.h"

namespace covey::client {
namespace {

using State = ShardRequest::State;

constexpr Transition<State> kTransitions[] = {
    {State::kBackingOff, State::kQueued},     {State::kBackingOff, State::kReceived},
    {State::kBackingOff, State::kStranded},   {State::kBackingOff, State::kOver},
    {State::kQueued, State::kBackingOff},     {State::kQueued, State::kInFlight},
    {State::kQueued, State::kReceived},       {State::kQueued, State::kStranded},
    {State::kQueued, State::kOver},           {State::kInFlight, State::kBackingOff},
    {State::kInFlight, State::kReceived},     {State::kInFlight, State::kStranded},
    {State::kInFlight, State::kOver},         {State::kReceived, State::kStranded},
    {State::kReceived, State::kOver},         {State::kStranded, State::kResending},
    {State::kStranded, State::kReceived},     {State::kStranded, State::kOver},
    {State::kResending, State::kUnconfirmed}, {State::kResending, State::kStranded},
    {State::kResending, State::kOver},        {State::kUnconfirmed, State::kReceived},
    {State::kUnconfirmed, State::kStranded},  {State::kUnconfirmed, State::kOver},
};

}  // namespace

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

std::span<const Transition<State>> ShardRequest::Transitions() { return kTransitions; }

void ShardRequest::MoveTo(State next) {
  COVEY_CHECK(IsLegalTransition(kTransitions, state_, next));
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
