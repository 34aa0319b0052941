// SPDX-License-Identifier: Apache-2.0
#include "server/replication/successor_state.h"

#include <optional>

#include "common/base/check.h"

namespace covey::server {
namespace {

using State = SuccessorState;
using Event = State::Event;
using Transfer = State::Transfer;
using Requirement = State::Requirement;
using Contact = State::Contact;

constexpr State::TransferTransition kTransferTransitions[] = {
    {Transfer::kUnknown, Event::kChainChanged, Transfer::kUnknown},
    {Transfer::kUnknown, Event::kJoined, Transfer::kUnknown},
    {Transfer::kUnknown, Event::kRejoining, Transfer::kUnknown},
    {Transfer::kUnknown, Event::kFilled, Transfer::kFilling},
    {Transfer::kUnknown, Event::kReplied, Transfer::kStreaming},
    {Transfer::kUnknown, Event::kGivenUp, Transfer::kUnknown},
    {Transfer::kFilling, Event::kChainChanged, Transfer::kFilling},
    {Transfer::kFilling, Event::kJoined, Transfer::kFilling},
    {Transfer::kFilling, Event::kRejoining, Transfer::kUnknown},
    {Transfer::kFilling, Event::kFilled, Transfer::kFilling},
    {Transfer::kFilling, Event::kReplied, Transfer::kStreaming},
    {Transfer::kFilling, Event::kGivenUp, Transfer::kUnknown},
    {Transfer::kUnconfirmed, Event::kChainChanged, Transfer::kUnconfirmed},
    {Transfer::kUnconfirmed, Event::kJoined, Transfer::kUnconfirmed},
    {Transfer::kUnconfirmed, Event::kRejoining, Transfer::kUnknown},
    {Transfer::kUnconfirmed, Event::kFilled, Transfer::kFilling},
    {Transfer::kUnconfirmed, Event::kReplied, Transfer::kStreaming},
    {Transfer::kUnconfirmed, Event::kGivenUp, Transfer::kUnknown},
    {Transfer::kStreaming, Event::kChainChanged, Transfer::kUnconfirmed},
    {Transfer::kStreaming, Event::kJoined, Transfer::kUnconfirmed},
    {Transfer::kStreaming, Event::kRejoining, Transfer::kUnknown},
    {Transfer::kStreaming, Event::kFilled, Transfer::kFilling},
    {Transfer::kStreaming, Event::kReplied, Transfer::kStreaming},
    {Transfer::kStreaming, Event::kGivenUp, Transfer::kUnknown},
};

constexpr State::RequirementTransition kRequirementTransitions[] = {
    {Requirement::kOptional, Event::kChainChanged, Requirement::kOptional},
    {Requirement::kOptional, Event::kJoined, Requirement::kJoined},
    {Requirement::kOptional, Event::kFilled, Requirement::kOptional},
    {Requirement::kOptional, Event::kGivenUp, Requirement::kOptional},
    {Requirement::kOptional, Event::kNearlyCaughtUp, Requirement::kRequired},
    {Requirement::kRequired, Event::kChainChanged, Requirement::kRequired},
    {Requirement::kRequired, Event::kJoined, Requirement::kJoined},
    {Requirement::kRequired, Event::kFilled, Requirement::kOptional},
    {Requirement::kRequired, Event::kCaughtUp, Requirement::kReady},
    {Requirement::kReady, Event::kChainChanged, Requirement::kReconfirming},
    {Requirement::kReady, Event::kJoined, Requirement::kJoined},
    {Requirement::kReady, Event::kFilled, Requirement::kReconfirming},
    {Requirement::kReconfirming, Event::kChainChanged, Requirement::kReconfirming},
    {Requirement::kReconfirming, Event::kJoined, Requirement::kJoined},
    {Requirement::kReconfirming, Event::kFilled, Requirement::kReconfirming},
    {Requirement::kReconfirming, Event::kCaughtUp, Requirement::kReady},
    {Requirement::kJoined, Event::kChainChanged, Requirement::kJoined},
    {Requirement::kJoined, Event::kRejoining, Requirement::kOptional},
};

constexpr State::ContactTransition kContactTransitions[] = {
    {Contact::kInTouch, Event::kChainChanged, Contact::kInTouch},
    {Contact::kInTouch, Event::kJoined, Contact::kInTouch},
    {Contact::kInTouch, Event::kRejoining, Contact::kInTouch},
    {Contact::kInTouch, Event::kSilent, Contact::kReportedSilent},
    {Contact::kInTouch, Event::kRefused, Contact::kRefused},
    {Contact::kReportedSilent, Event::kChainChanged, Contact::kInTouch},
    {Contact::kReportedSilent, Event::kJoined, Contact::kInTouch},
    {Contact::kReportedSilent, Event::kRejoining, Contact::kInTouch},
    {Contact::kReportedSilent, Event::kRefused, Contact::kRefused},
    {Contact::kRefused, Event::kChainChanged, Contact::kInTouch},
    {Contact::kRefused, Event::kJoined, Contact::kInTouch},
    {Contact::kRefused, Event::kRejoining, Contact::kInTouch},
    {Contact::kRefused, Event::kRefused, Contact::kRefused},
};

template <typename Region, typename Arrow>
void Advance(std::span<const Arrow> table, Event event, Region& region) {
  const std::optional<Region> next = NextState(table, region, event);
  COVEY_CHECK(next.has_value());
  region = *next;
}

}  // namespace

void SuccessorState::Apply(Event event) {
  Advance(TransferTransitions(), event, transfer_);
  Advance(RequirementTransitions(), event, requirement_);
  Advance(ContactTransitions(), event, contact_);
}

std::span<const State::TransferTransition> SuccessorState::TransferTransitions() {
  return kTransferTransitions;
}
std::span<const State::RequirementTransition> SuccessorState::RequirementTransitions() {
  return kRequirementTransitions;
}
std::span<const State::ContactTransition> SuccessorState::ContactTransitions() {
  return kContactTransitions;
}

}  // namespace covey::server
