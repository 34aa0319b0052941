// SPDX-License-Identifier: Apache-2.0
#include "client/cli/status/at_risk.h"

#include "gtest/gtest.h"

namespace covey::cli {
namespace {

TEST(AtRiskTest, SaysHowMuchWouldBeLost) {
  proto::AtRisk at_risk;
  EXPECT_EQ(DurabilityLine(at_risk), "") << "an earlier version";
  at_risk.set_durability("memory");
  EXPECT_EQ(DurabilityLine(at_risk),
            "durability memory: if all servers failed now, no update would be lost");
  at_risk.set_updates(1240);
  EXPECT_EQ(ShowAtRisk(at_risk), "all 1,240 updates") << "no snapshot";
  at_risk.set_durability("flushed:2s");
  at_risk.set_snapshot("snapshot-000017-e42");
  at_risk.set_age_ms(2100);
  EXPECT_EQ(
      DurabilityLine(at_risk),
      "durability flushed:2s: if all servers failed now, 1,240 updates of the last 2.1 s would be "
      "lost");
  at_risk.set_updates(1);
  at_risk.set_flush_is_behind(true);
  EXPECT_EQ(DurabilityLine(at_risk),
            "durability flushed:2s: if all servers failed now, 1 update of the last 2.1 s would be "
            "lost; flushes are behind their interval");
}

}  // namespace
}  // namespace covey::cli
