// SPDX-License-Identifier: Apache-2.0
#include "common/base/transitions.h"

#include <set>
#include <utility>

#include "gtest/gtest.h"

namespace covey {
namespace {

enum class Door { kOpen, kClosed, kLocked };
enum class Act { kPush, kTurnKey, kPaint };

constexpr Door kDoors[] = {Door::kOpen, Door::kClosed, Door::kLocked};

constexpr Transition<Door> kTransitions[] = {
    {Door::kOpen, Door::kClosed},
    {Door::kClosed, Door::kOpen},
    {Door::kClosed, Door::kLocked},
    {Door::kLocked, Door::kClosed},
};

constexpr EventTransition<Door, Act> kActs[] = {
    {Door::kOpen, Act::kPush, Door::kClosed},
    {Door::kClosed, Act::kPush, Door::kOpen},
    {Door::kClosed, Act::kTurnKey, Door::kLocked},
    {Door::kLocked, Act::kTurnKey, Door::kClosed},
};

static_assert(IsLegalTransition(kTransitions, Door::kOpen, Door::kClosed));
static_assert(!IsLegalTransition(kTransitions, Door::kOpen, Door::kLocked));

TEST(Transitions, ExactlyTheListedOnesAreLegal) {
  std::set<std::pair<Door, Door>> listed;
  for (const auto& [from, to] : kTransitions) listed.insert({from, to});
  for (const Door from : kDoors) {
    for (const Door to : kDoors) {
      EXPECT_EQ(IsLegalTransition(kTransitions, from, to), listed.contains({from, to}))
          << static_cast<int>(from) << " to " << static_cast<int>(to);
    }
  }
}

TEST(Transitions, AnEmptyTableAllowsNothing) {
  EXPECT_FALSE(IsLegalTransition({}, Door::kOpen, Door::kOpen));
}

TEST(EventTransitions, AnEventLeadsWhereTheTableSays) {
  for (const auto& [from, event, to] : kActs) EXPECT_EQ(NextState(kActs, from, event), to);
}

TEST(EventTransitions, AnEventOfOtherStatesIsIllegal) {
  EXPECT_EQ(NextState(kActs, Door::kLocked, Act::kPush), std::nullopt);
  EXPECT_EQ(NextState(kActs, Door::kOpen, Act::kTurnKey), std::nullopt);
}

TEST(EventTransitions, AnEventOfNoStateIsIgnored) {
  for (const Door door : kDoors) EXPECT_EQ(NextState(kActs, door, Act::kPaint), door);
}

}  // namespace
}  // namespace covey
