// SPDX-License-Identifier: Apache-2.0
#include "client/engine/requests/shard_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace covey::client {
namespace {

using State = ShardRequest::State;
using ::testing::UnorderedElementsAreArray;

constexpr State kStates[] = {State::kBackingOff,  State::kQueued,   State::kInFlight,
                             State::kReceived,    State::kStranded, State::kResending,
                             State::kUnconfirmed, State::kOver};

std::set<State> SuccessorsOf(State state) {
  std::set<State> successors;
  for (const auto& [from, to] : ShardRequest::Transitions()) {
    if (from == state) successors.insert(to);
  }
  return successors;
}

// A shortest path of legal moves from the start to each state.
std::map<State, std::vector<State>> WaysFromStart() {
  std::map<State, std::vector<State>> ways = {{State::kBackingOff, {}}};
  std::vector<State> frontier = {State::kBackingOff};
  while (!frontier.empty()) {
    const State from = frontier.front();
    frontier.erase(frontier.begin());
    for (const State next : SuccessorsOf(from)) {
      if (ways.count(next) > 0) continue;
      ways[next] = ways[from];
      ways[next].push_back(next);
      frontier.push_back(next);
    }
  }
  return ways;
}

ShardRequest RequestIn(State state) {
  ShardRequest request;
  const std::map<State, std::vector<State>> ways = WaysFromStart();
  for (const State next : ways.at(state)) request.MoveTo(next);
  return request;
}

TEST(ShardRequestTest, WalksEachLegalMoveAndRefusesEachOther) {
  ASSERT_EQ(WaysFromStart().size(), std::size(kStates)) << "a state cannot be reached";
  for (const State from : kStates) {
    const std::set<State> legal = SuccessorsOf(from);
    for (const State to : kStates) {
      ShardRequest request = RequestIn(from);
      if (legal.contains(to)) {
        request.MoveTo(to);
        EXPECT_EQ(request.state(), to);
      } else {
        EXPECT_DEATH(request.MoveTo(to), "check_failed") << NameOf(from) << " to " << NameOf(to);
      }
    }
  }
}

TEST(ShardRequestTest, EveryStateMayEndAndNothingFollowsTheEnd) {
  for (const State state : kStates) {
    EXPECT_EQ(SuccessorsOf(state).contains(State::kOver), state != State::kOver) << NameOf(state);
  }
}

// A received push never returns to a state whose end would answer its operation.
TEST(ShardRequestTest, NothingLeadsBackToTheFirstHalfOfALife) {
  const std::set<State> second_half = {State::kReceived, State::kStranded, State::kResending,
                                       State::kUnconfirmed};
  for (const State state : second_half) {
    for (const State next : SuccessorsOf(state)) {
      EXPECT_TRUE(next == State::kOver || second_half.count(next) > 0)
          << NameOf(state) << " to " << NameOf(next);
    }
  }
}

TEST(ShardRequestTest, OnlyTwoStatesAreInFlight) {
  std::vector<State> in_flight;
  for (const State state : kStates) {
    if (RequestIn(state).in_flight()) in_flight.push_back(state);
  }
  EXPECT_THAT(in_flight, UnorderedElementsAreArray({State::kInFlight, State::kResending}));
}

TEST(ShardRequestTest, RetriesOnlyWhatARetryMayMend) {
  EXPECT_TRUE(IsRetryable(absl::UnavailableError("")));
  EXPECT_TRUE(IsRetryable(absl::ResourceExhaustedError("")));
  EXPECT_TRUE(IsRetryable(absl::FailedPreconditionError("")));
  EXPECT_TRUE(IsRetryable(absl::DataLossError("")));
  EXPECT_FALSE(IsRetryable(absl::OkStatus()));
  EXPECT_FALSE(IsRetryable(absl::InvalidArgumentError("")));
  EXPECT_FALSE(IsRetryable(absl::AbortedError("")));
}

}  // namespace
}  // namespace covey::client
