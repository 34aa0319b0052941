// SPDX-License-Identifier: Apache-2.0
#include "client/engine/sending/server_window.h"

#include <gtest/gtest.h>

#include "common/base/planted_bug.h"
#include "common/base/planted_bug_switch.h"

namespace covey::client {
namespace {

constexpr size_t kMiB = 1 << 20;

TEST(ServerWindowTest, BeginsSmallAndThenFollowsWhatTheServerAllows) {
  ServerWindow window(32 * kMiB);
  EXPECT_EQ(window.limit(), ServerWindow::kFirstBytes);
  window.Answered(kMiB, 0);
  EXPECT_EQ(window.limit(), 32 * kMiB);
  window.Answered(kMiB, 8 * kMiB);
  EXPECT_EQ(window.limit(), 8 * kMiB);
  window.Answered(kMiB, 0);
  EXPECT_EQ(window.limit(), 8 * kMiB) << "0 means as before";
  window.Answered(kMiB, 64 * kMiB);
  EXPECT_EQ(window.limit(), 32 * kMiB) << "never above the client's own budget";
}

TEST(ServerWindowTest, SendsWithinTheLimitAndOneAloneAlways) {
  ServerWindow window(4 * kMiB);
  EXPECT_TRUE(window.MaySend(16 * kMiB));
  window.Send(3 * kMiB);
  EXPECT_TRUE(window.MaySend(kMiB));
  EXPECT_FALSE(window.MaySend(kMiB + 1));
  window.Gone(3 * kMiB);
  EXPECT_TRUE(window.MaySend(16 * kMiB));
  EXPECT_TRUE(window.idle());
}

TEST(ServerWindowTest, HalvesOncePerWindowOfRefusalsAndGrowsBackStepByStep) {
  ServerWindow window(32 * kMiB);
  window.Answered(1, 16 * kMiB);
  const uint64_t first = window.Send(kMiB);
  const uint64_t second = window.Send(kMiB);
  window.Refused(first);
  EXPECT_EQ(window.limit(), 8 * kMiB);
  window.Refused(second);
  EXPECT_EQ(window.limit(), 8 * kMiB) << "sent before the window was halved";
  window.Refused(window.Send(kMiB));
  EXPECT_EQ(window.limit(), 4 * kMiB);
  // One window of replies is one step.
  for (int i = 0; i < 4; ++i) window.Answered(kMiB, 16 * kMiB);
  EXPECT_NEAR(static_cast<double>(window.limit()), 4.0 * kMiB + ServerWindow::kStepBytes, 20'000);
  for (int i = 0; i < 10'000; ++i) window.Answered(kMiB, 16 * kMiB);
  EXPECT_EQ(window.limit(), 16 * kMiB);
  for (int i = 0; i < 20; ++i) window.Refused(window.Send(kMiB));
  EXPECT_EQ(window.limit(), ServerWindow::kSmallestBytes);
}

// Two clients that share a server's capacity converge to equal shares, from any start.
TEST(ServerWindowTest, SharesEvenOut) {
  ServerWindow a(64 * kMiB), b(64 * kMiB);
  a.Answered(1, 48 * kMiB);
  b.Answered(1, 4 * kMiB);
  b.Answered(1, 48 * kMiB);
  b.Refused(b.Send(1));
  b.Refused(b.Send(1));
  b.Refused(b.Send(1));
  double sum_a = 0, sum_b = 0;
  for (int round = 0; round < 2000; ++round) {
    const bool full = a.limit() + b.limit() > 16 * kMiB;
    for (ServerWindow* window : {&a, &b}) {
      if (full) {
        window->Refused(window->Send(1));
      } else {
        window->Answered(window->limit(), 48 * kMiB);
      }
    }
    if (round < 1000) continue;
    sum_a += static_cast<double>(a.limit());
    sum_b += static_cast<double>(b.limit());
  }
  EXPECT_NEAR(sum_a / sum_b, 1, 0.05);
}

TEST(ServerWindowTest, PlantedBugCountsMessages) {
  PlantBug(PlantedBug::kCountMessagesNotBytes);
  ServerWindow window(4 * kMiB);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(window.MaySend(4 * kMiB));
    window.Send(4 * kMiB);
  }
  PlantBug(PlantedBug::kNone);
  EXPECT_FALSE(window.MaySend(1));
}

}  // namespace
}  // namespace covey::client
