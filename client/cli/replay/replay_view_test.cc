// SPDX-License-Identifier: Apache-2.0
#include "client/cli/replay/replay_view.h"

#include "common/recording/testing/recording_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::cli {
namespace {

using ::testing::HasSubstr;

// Groups 1 and 2 by turns, a digest after the second record.
ShardHistory SmallHistory() {
  ShardHistory history;
  history.table = SmallTable();
  history.name = "table 'weights' shard 0";
  for (uint64_t i = 0; i < 5; ++i) {
    RecordedUpdate update;
    update.index = update.version = i + 1;
    update.record = UpdateOf(1 + i % 2, 10 + i / 2);
    if (i == 1) update.digest = 7;
    history.updates.push_back(update);
  }
  return history;
}

TEST(ReplayView, SumsUpATable) {
  TableReplay table{.name = "weights"};
  table.Add(SmallHistory(),
            {.records = 5, .pushes = 5, .digests = 1, .difference = {}, .values = {}});
  table.Add(SmallHistory(),
            {.records = 5, .pushes = 5, .digests = 1, .difference = {}, .values = {}});
  EXPECT_EQ(table.unchecked, 6u);
  EXPECT_EQ(ReplayText({table}),
            "TABLE    SHARDS  RECORDS  PUSHES  DIGESTS\n"
            "weights       2       10      10        2\n"
            "bit-equal: 2 shards after 10 records, at all 2 digests; 6 records after the last are "
            "not checked\n");
  EXPECT_THAT(ReplayJson({table}, {"a note"}), HasSubstr("\"digests\": 2"));
}

TEST(ReplayView, NamesTheProducersOfADifference) {
  EXPECT_EQ(DescribeDifference(SmallHistory(), {.after = 2, .at = 5}),
            "table 'weights' shard 0: the first difference is among records 3 to 5, which hold "
            "pushes of group 1 (11 to 12), group 2 (11 to 11)");
}

TEST(ReplayView, PrintsTheOrder) {
  ShardHistory history = SmallHistory();
  history.updates.resize(3);
  history.updates[1].record.is_update = false;
  history.updates[1].record.pushes[0].discarded = true;
  history.updates[2].record = {};
  history.updates[2].record.cut = 17;
  EXPECT_EQ(OrderLines(history),
            "weights/0 1 v1 group-1:10 samples=8 base=0\n"
            "weights/0 2 group-2:10 samples=8 base=0 discarded\n"
            "weights/0 3 cut 17\n");
}

}  // namespace
}  // namespace covey::cli
