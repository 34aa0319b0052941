// SPDX-License-Identifier: Apache-2.0
#include "server/replication/successor_state.h"

#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace covey::server {
namespace {

using State = SuccessorState;
using Event = State::Event;
using Transfer = State::Transfer;
using Requirement = State::Requirement;
using Contact = State::Contact;

constexpr Event kEvents[] = {Event::kChainChanged,   Event::kJoined,   Event::kRejoining,
                             Event::kFilled,         Event::kReplied,  Event::kGivenUp,
                             Event::kNearlyCaughtUp, Event::kCaughtUp, Event::kSilent,
                             Event::kRefused};

template <typename Step, typename Region>
bool IsLegal(std::span<const Step> steps, Region from, Event event) {
  bool knows_event = false;
  for (const Step& step : steps) {
    if (step.event != event) continue;
    if (step.from == from) return true;
    knows_event = true;
  }
  return !knows_event;  // The region ignores the event.
}

bool IsLegal(const State& state, Event event) {
  return IsLegal(State::TransferTransitions(), state.transfer(), event) &&
         IsLegal(State::RequirementTransitions(), state.requirement(), event) &&
         IsLegal(State::ContactTransitions(), state.contact(), event);
}

template <typename Step, typename Region>
Region Next(std::span<const Step> steps, Region from, Event event) {
  for (const Step& step : steps) {
    if (step.event == event && step.from == from) return step.to;
  }
  return from;
}

using Triple = std::tuple<Transfer, Requirement, Contact>;
Triple TripleOf(const State& state) {
  return {state.transfer(), state.requirement(), state.contact()};
}

// Applies every legal event to every state that can be reached.
template <typename Visit>
void Walk(Visit visit) {
  std::vector<State> open = {State::Joined(), State::Joining()};
  std::set<Triple> seen = {TripleOf(open[0]), TripleOf(open[1])};
  while (!open.empty()) {
    const State from = open.back();
    open.pop_back();
    for (const Event event : kEvents) {
      if (!IsLegal(from, event)) {
        visit(from, event, nullptr);
        continue;
      }
      State to = from;
      to.Apply(event);
      visit(from, event, &to);
      if (seen.insert(TripleOf(to)).second) open.push_back(to);
    }
  }
}

TEST(SuccessorState, GoesWhereTheTablesSay) {
  Walk([](const State& from, Event event, const State* to) {
    if (to == nullptr) return;
    EXPECT_EQ(to->transfer(), Next(State::TransferTransitions(), from.transfer(), event));
    EXPECT_EQ(to->requirement(), Next(State::RequirementTransitions(), from.requirement(), event));
    EXPECT_EQ(to->contact(), Next(State::ContactTransitions(), from.contact(), event));
  });
}

TEST(SuccessorState, EveryTransitionOfTheTablesIsWalked) {
  std::set<std::pair<Transfer, Event>> transfers;
  std::set<std::pair<Requirement, Event>> requirements;
  std::set<std::pair<Contact, Event>> contacts;
  Walk([&](const State& from, Event event, const State* to) {
    if (to == nullptr) return;
    transfers.insert({from.transfer(), event});
    requirements.insert({from.requirement(), event});
    contacts.insert({from.contact(), event});
  });
  for (const auto& step : State::TransferTransitions()) {
    EXPECT_TRUE(transfers.contains({step.from, step.event}));
  }
  for (const auto& step : State::RequirementTransitions()) {
    EXPECT_TRUE(requirements.contains({step.from, step.event}));
  }
  for (const auto& step : State::ContactTransitions()) {
    EXPECT_TRUE(contacts.contains({step.from, step.event}));
  }
}

TEST(SuccessorState, AnIllegalEventIsOurBug) {
  // A joined successor is not filled: it has to report itself unfit.
  EXPECT_DEATH(State::Joined().Apply(Event::kFilled), "check_failed");
  EXPECT_DEATH(State::Joining().Apply(Event::kCaughtUp), "check_failed");
  EXPECT_DEATH(State::Joining().Apply(Event::kRejoining), "check_failed");
}

TEST(SuccessorState, ARequiredSuccessorIsNeverGivenUp) {
  Walk([](const State& from, Event event, const State* to) {
    if (event != Event::kGivenUp) return;
    EXPECT_EQ(to != nullptr, !from.is_required());
  });
}

TEST(SuccessorState, ASuccessorThatWasReadyStaysRequiredUntilItLeavesTheChain) {
  Walk([](const State& from, Event, const State* to) {
    const bool was_ready = from.requirement() == Requirement::kReady ||
                           from.requirement() == Requirement::kReconfirming;
    if (was_ready && to != nullptr) {
      EXPECT_TRUE(to->is_required());
    }
  });
}

TEST(SuccessorState, NoSuccessorIsReadyAcrossAChangeOfTheChain) {
  Walk([](const State&, Event event, const State* to) {
    if (to != nullptr && event == Event::kChainChanged) {
      EXPECT_FALSE(to->is_ready());
    }
  });
}

TEST(SuccessorState, AChangeOfTheChainEndsARefusal) {
  Walk([](const State& from, Event event, const State* to) {
    if (to == nullptr) return;
    const bool is_change =
        event == Event::kChainChanged || event == Event::kJoined || event == Event::kRejoining;
    if (is_change) {
      EXPECT_EQ(to->contact(), Contact::kInTouch);
    }
    if (from.is_refused() && !is_change) {
      EXPECT_TRUE(to->is_refused());
    }
  });
}

}  // namespace
}  // namespace covey::server
