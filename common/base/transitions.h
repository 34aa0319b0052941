// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <type_traits>

namespace covey {

// Tables of legal transitions, for classes whose state is one enum. The table repeats the diagram
// above the class, the class checks each change of its state against it, and a test walks it:
//
//   constexpr Transition<State> kTransitions[] = {{State::kIdle, State::kRunning}, ...};
//   COVEY_CHECK(IsLegalTransition(kTransitions, state_, next));
//
// Pure. O(length of the table) per call.

// One arrow of a diagram.
template <typename State>
struct Transition {
  State from;
  State to;
};

// One arrow of a diagram whose arrows bear the event that causes them.
template <typename State, typename Event>
struct EventTransition {
  State from;
  Event event;
  State to;
};

template <typename State>
constexpr bool IsLegalTransition(std::span<const std::type_identity_t<Transition<State>>> table,
                                 State from, State to) {
  for (const Transition<State>& transition : table) {
    if (transition.from == from && transition.to == to) return true;
  }
  return false;
}

// The state that `event` leads to: the first transition of the table that fits. A table without any
// transition for `event` ignores it: the state stays. Nothing: other states have a transition for
// `event` and `from` has none, so the event is illegal here.
template <typename State, typename Event>
constexpr std::optional<State> NextState(
    std::span<const std::type_identity_t<EventTransition<State, Event>>> table, State from,
    Event event) {
  bool ignores_event = true;
  for (const EventTransition<State, Event>& transition : table) {
    if (transition.event != event) continue;
    if (transition.from == from) return transition.to;
    ignores_event = false;
  }
  if (ignores_event) return from;
  return std::nullopt;
}

}  // namespace covey
