// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "client/cli/run/progress_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/testing/status_fixture.h"

namespace covey::cli {
namespace {

using ::testing::ElementsAre;

constexpr absl::Duration kElapsed = absl::Seconds(12);

TEST(ProgressViewTest, OneAlignedLinePerGroup) {
  EXPECT_THAT(ProgressBlock(StatusForTests(), kElapsed, 10),
              ElementsAre("group 0   step       31  samples       3,904      2,500 samples/s  "
                          "loss 0.4      staleness 1.5  1 straggler",
                          "group 1    broken: worker-2 dead: silent for 2.6 s"));
}

TEST(ProgressViewTest, NeverMoreLinesThanThereIsRoomFor) {
  EXPECT_THAT(ProgressBlock(StatusForTests(), kElapsed, 1), ElementsAre("and 2 more groups"));
}

TEST(ProgressViewTest, EverythingInOneLine) {
  EXPECT_EQ(ProgressLine(StatusForTests(), kElapsed),
            "12 s: group 0 step 31, 3,904 samples, 2,500/s, loss 0.4, staleness 1.5 1 straggler; "
            "group 1 broken: worker-2 dead: silent for 2.6 s");
}

TEST(ProgressViewTest, SaysWhatIsAtRiskWhereThereAreSnapshots) {
  proto::StatusReply status = StatusForTests();
  status.mutable_at_risk()->set_updates(40);
  EXPECT_THAT(ProgressBlock(status, kElapsed, 10), ::testing::SizeIs(2));
  status.mutable_at_risk()->set_snapshot("snapshot-000017-e42");
  status.mutable_at_risk()->set_age_ms(2100);
  const char* const at_risk = "at risk: 40 updates of the last 2.1 s";
  EXPECT_EQ(ProgressBlock(status, kElapsed, 10).back(), at_risk);
  EXPECT_THAT(ProgressBlock(status, kElapsed, 2), ElementsAre("and 2 more groups", at_risk));
  EXPECT_THAT(ProgressLine(status, kElapsed),
              ::testing::EndsWith("; at risk: 40 updates of the last 2.1 s"));
}

TEST(ProgressViewTest, ALineNamesOnlyTheFirstGroups) {
  proto::StatusReply status = StatusForTests();
  for (uint32_t id = 2; id < 7; ++id) {
    proto::Group& group = *status.mutable_view()->add_groups();
    group.set_id(id);
    group.set_state(proto::Group::ACTIVE);
  }
  EXPECT_THAT(ProgressLine(status, kElapsed),
              ::testing::EndsWith("; group 2 starting; group 3 starting; and 3 more groups"));
}

TEST(ProgressViewTest, BeforeThereAreGroupsItSaysWhoIsMissing) {
  proto::StatusReply status;
  status.mutable_view()->set_waiting_for("1 of 4 workers");
  EXPECT_THAT(ProgressBlock(status, kElapsed, 10), ElementsAre("12 s  waiting for 1 of 4 workers"));
  EXPECT_EQ(ProgressLine(status, kElapsed), "12 s: waiting for 1 of 4 workers");
}

}  // namespace
}  // namespace covey::cli
