// SPDX-License-Identifier: Apache-2.0
#include "worker/data/local_work_queue.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

proto::WorkItem Item(uint64_t pass, uint64_t first, uint64_t count) {
  proto::WorkItem item;
  item.set_pass(pass);
  item.set_first(first);
  item.set_count(count);
  return item;
}

std::vector<std::string> Show(const std::vector<proto::WorkItem>& items) {
  std::vector<std::string> shown;
  for (const proto::WorkItem& item : items) {
    shown.push_back(absl::StrCat(item.pass(), ":", item.first(), "+", item.count()));
  }
  return shown;
}

TEST(LocalWorkQueueTest, BatchesAreCutOutOfItems) {
  LocalWorkQueue work;
  work.Add(Item(0, 4, 4));
  work.Add(Item(1, 0, 4));
  EXPECT_THAT(Show(work.Take(kStart, 3)), ElementsAre("0:4+3"));
  EXPECT_THAT(Show(work.Take(kStart, 3)), ElementsAre("0:7+1", "1:0+2"));
  EXPECT_EQ(work.waiting(), 2u);
  EXPECT_THAT(Show(work.Take(kStart, 3)), ElementsAre("1:2+2"));
  EXPECT_THAT(Show(work.Take(kStart, 3)), IsEmpty());
}

TEST(LocalWorkQueueTest, WhatIsTrainedIsReportedOnceAndMerged) {
  LocalWorkQueue work;
  work.Add(Item(0, 0, 8));
  work.Take(kStart, 2);
  work.Take(kStart, 2);
  work.Take(kStart, 2);
  work.Finish(1);
  EXPECT_THAT(Show(work.TakeReport(10)), ElementsAre("0:0+4"));
  EXPECT_FALSE(work.has_report());
  work.Finish(1);
  EXPECT_FALSE(work.has_report());
  EXPECT_THAT(Show(work.TakeUntrained()), ElementsAre("0:4+2", "0:6+2"));
  work.Finish(0);
  EXPECT_FALSE(work.has_report()) << "what was given back is not reported as trained";
}

TEST(LocalWorkQueueTest, EmptyBatchesCountToo) {
  LocalWorkQueue work;
  work.Add(Item(0, 0, 2));
  work.Take(kStart, 2);
  work.Take(kStart, 2);
  work.Finish(1);
  EXPECT_TRUE(work.has_report());
}

TEST(LocalWorkQueueTest, FastStepsWantMoreAhead) {
  LocalWorkQueue slow, fast;
  EXPECT_GE(slow.Wanted(absl::Milliseconds(200)), 1u);
  for (int i = 0; i < 50; ++i) {
    slow.Take(kStart + absl::Seconds(i), 10);
    fast.Take(kStart + absl::Milliseconds(10 * i), 10);
  }
  EXPECT_EQ(slow.Wanted(absl::Milliseconds(200)), 20u);
  EXPECT_NEAR(static_cast<double>(fast.Wanted(absl::Milliseconds(200))), 220, 11);
}

}  // namespace
}  // namespace covey::worker
