// SPDX-License-Identifier: Apache-2.0
#include "server/replication/successor_state.h"

#include "common/base/check.h"

namespace covey::server {
namespace {

using State = SuccessorState;
using Event = State::Event;
using Transfer = State::Transfer;
using Requirement = State::Requirement;
using Contact = State::Contact;

constexpr State::TransferStep kTransferSteps[] = {
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

constexpr State::RequirementStep kRequirementSteps[] = {
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

constexpr State::ContactStep kContactSteps[] = {
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

// A region that has no transition at all for the event ignores it.
template <typename Region, typename Step>
void Advance(std::span<const Step> steps, Event event, Region& region) {
  bool knows_event = false;
  for (const Step& step : steps) {
    if (step.event != event) continue;
    knows_event = true;
    if (step.from != region) continue;
    region = step.to;
    return;
  }
  COVEY_CHECK(!knows_event);
}

}  // namespace

void SuccessorState::Apply(Event event) {
  Advance(TransferSteps(), event, transfer_);
  Advance(RequirementSteps(), event, requirement_);
  Advance(ContactSteps(), event, contact_);
}

std::span<const State::TransferStep> SuccessorState::TransferSteps() { return kTransferSteps; }
std::span<const State::RequirementStep> SuccessorState::RequirementSteps() {
  return kRequirementSteps;
}
std::span<const State::ContactStep> SuccessorState::ContactSteps() { return kContactSteps; }

}  // namespace covey::server
