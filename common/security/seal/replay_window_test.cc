// SPDX-License-Identifier: Apache-2.0
#include "common/security/seal/replay_window.h"

#include <gtest/gtest.h>

#include <set>

#include "common/base/random.h"

namespace covey {
namespace {

// True when the message was new.
bool Take(ReplayWindow& window, uint64_t number) {
  if (!window.IsNew(number)) return false;
  window.Note(number);
  return true;
}

TEST(ReplayWindowTest, TakesEachMessageOnce) {
  ReplayWindow window;
  for (uint64_t i = 0; i < 5000; ++i) {
    EXPECT_TRUE(Take(window, i));
    EXPECT_FALSE(Take(window, i));
  }
}

TEST(ReplayWindowTest, TakesWhatIsLateWithinTheWindow) {
  ReplayWindow window;
  EXPECT_TRUE(Take(window, 10000));
  EXPECT_TRUE(Take(window, 10000 - 1023));
  EXPECT_FALSE(Take(window, 10000 - 1024));
  EXPECT_FALSE(Take(window, 0));
  EXPECT_FALSE(Take(window, 10000 - 1023));
  EXPECT_TRUE(Take(window, 9999));
}

TEST(ReplayWindowTest, ALookDoesNotMoveIt) {
  ReplayWindow window;
  EXPECT_TRUE(Take(window, 5));
  EXPECT_TRUE(window.IsNew(uint64_t{1} << 60));
  EXPECT_TRUE(Take(window, 4));
}

TEST(ReplayWindowTest, GoesToTheLastNumber) {
  ReplayWindow window;
  EXPECT_TRUE(Take(window, 3));
  EXPECT_TRUE(Take(window, ~uint64_t{0}));
  EXPECT_FALSE(Take(window, ~uint64_t{0}));
  EXPECT_TRUE(Take(window, ~uint64_t{0} - 1000));
  EXPECT_FALSE(Take(window, 3));
}

// As a set of all that was taken, and the rule of the header.
TEST(ReplayWindowTest, DecidesAsThePlainRule) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    ReplayWindow window;
    std::set<uint64_t> taken;
    uint64_t around = random.Below(3000);
    for (int i = 0; i < 3000; ++i) {
      if (random.Below(50) == 0) around += random.Below(3000);
      around += random.Below(3);
      const uint64_t back = random.Below(random.Below(10) == 0 ? 2000 : 40);
      const uint64_t number = around - (back < around ? back : around);
      const bool too_old = !taken.empty() && *taken.rbegin() > number &&
                           *taken.rbegin() - number >= ReplayWindow::kMessages;
      EXPECT_EQ(Take(window, number), !too_old && taken.insert(number).second)
          << "seed " << seed << ", step " << i;
    }
  }
}

}  // namespace
}  // namespace covey
