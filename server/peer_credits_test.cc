// SPDX-License-Identifier: Apache-2.0
#include "server/peer_credits.h"

#include <gtest/gtest.h>

namespace covey::server {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();
constexpr size_t kBudget = 64 << 20;

TEST(PeerCreditsTest, SharesTheBudgetEvenly) {
  PeerCredits credits(kBudget);
  EXPECT_EQ(credits.Share(), kBudget);
  for (uint64_t node = 2; node < 12; ++node) credits.Heard(kStart, NodeId(node));
  credits.Heard(kStart, NodeId(2));
  EXPECT_EQ(credits.Share(), kBudget / 10);
}

TEST(PeerCreditsTest, ForgetsThoseThatAreSilent) {
  PeerCredits credits(kBudget);
  credits.Heard(kStart, NodeId(2));
  for (int second = 0; second < 10; ++second) {
    credits.Heard(kStart + absl::Seconds(second), NodeId(3));
    EXPECT_EQ(credits.Share(), kBudget / 2);
  }
  credits.Heard(kStart + absl::Seconds(12), NodeId(3));
  EXPECT_EQ(credits.Share(), kBudget);
}

TEST(PeerCreditsTest, SharesAnotherBudgetAmongThoseHeardFrom) {
  PeerCredits credits(kBudget);
  for (uint64_t node = 2; node < 6; ++node) credits.Heard(kStart, NodeId(node));
  credits.SetBudget(2 * kBudget);
  EXPECT_EQ(credits.Share(), 2 * kBudget / 4);
}

TEST(PeerCreditsTest, LeavesEverybodySomething) {
  PeerCredits credits(kBudget);
  for (uint64_t node = 1; node <= 20'000; ++node) credits.Heard(kStart, NodeId(node));
  EXPECT_EQ(credits.Share(), PeerCredits::kLeastBytes);
}

}  // namespace
}  // namespace covey::server
