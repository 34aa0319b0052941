// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

namespace covey::worker {

// One arrow of a state machine's diagram. A machine checks each change of its state against a table
// of these.
template <typename State>
struct Transition {
  State from;
  State to;
};

template <typename State, size_t kCount>
bool IsListed(const Transition<State> (&table)[kCount], State from, State to) {
  return std::any_of(std::begin(table), std::end(table), [&](const Transition<State>& transition) {
    return transition.from == from && transition.to == to;
  });
}

}  // namespace covey::worker
