// SPDX-License-Identifier: Apache-2.0
#include "worker/data/local_work_queue.h"

#include <algorithm>
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
  const StepNumbers steps;
  LocalWorkQueue work;
  work.Add(Item(0, 4, 4));
  work.Add(Item(1, 0, 4));
  EXPECT_THAT(Show(work.Take(kStart, 3, steps)), ElementsAre("0:4+3"));
  EXPECT_THAT(Show(work.Take(kStart, 3, steps)), ElementsAre("0:7+1", "1:0+2"));
  EXPECT_EQ(work.waiting(), 2u);
  EXPECT_THAT(Show(work.Take(kStart, 3, steps)), ElementsAre("1:2+2"));
  EXPECT_THAT(Show(work.Take(kStart, 3, steps)), IsEmpty());
}

TEST(LocalWorkQueueTest, WhatIsTrainedIsReportedOnceAndMerged) {
  const StepNumbers steps;
  LocalWorkQueue work;
  work.Add(Item(0, 0, 8));
  work.Take(kStart, 2, steps);
  work.Take(kStart, 2, steps);
  work.Take(kStart, 2, steps);
  work.Finish(1, steps);
  EXPECT_THAT(Show(work.TakeReport(kStart, 10).finished), ElementsAre("0:0+4"));
  EXPECT_FALSE(work.HasReport(kStart));
  work.Finish(1, steps);
  EXPECT_FALSE(work.HasReport(kStart));
  EXPECT_THAT(Show(work.TakeUntrained()), ElementsAre("0:4+2", "0:6+2"));
  work.Finish(0, steps);
  EXPECT_FALSE(work.HasReport(kStart)) << "what was given back is not reported as trained";
}

TEST(LocalWorkQueueTest, WhatWaitsIsGivenUpFromItsEnd) {
  const StepNumbers steps;
  LocalWorkQueue work;
  work.Add(Item(0, 0, 4));
  work.Add(Item(0, 4, 4));
  work.Add(Item(0, 8, 4));
  work.Take(kStart, 2, steps);
  EXPECT_THAT(Show(work.TakeWaiting(2)), ElementsAre("0:8+4", "0:4+4"));
  EXPECT_EQ(work.waiting(), 2u);
  EXPECT_THAT(Show(work.TakeWaiting(9)), ElementsAre("0:2+2"));
  EXPECT_EQ(work.waiting(), 0u);
  EXPECT_THAT(Show(work.Take(kStart, 2, steps)), IsEmpty());
  work.Finish(0, steps);
  EXPECT_THAT(Show(work.TakeReport(kStart, 9).finished), ElementsAre("0:0+2"))
      << "what is in training stays";
}

TEST(LocalWorkQueueTest, EmptyBatchesCountToo) {
  const StepNumbers steps;
  LocalWorkQueue work;
  work.Add(Item(0, 0, 2));
  work.Take(kStart, 2, steps);
  work.Take(kStart, 2, steps);
  work.Finish(1, steps);
  EXPECT_TRUE(work.HasReport(kStart));
}

// The program of a worker that takes a batch, makes its step, and finishes the batch before.
class Program {
 public:
  void Take(uint64_t examples) { work.Take(now, examples, steps_); }
  void Step(uint64_t examples, uint64_t number) {
    Take(examples);
    Finish(1);
    steps_.Begin();
    steps_.Set(steps_.begun(), covey::Step(number));
    now += absl::Milliseconds(1);
  }
  void Finish(size_t under_way) { work.Finish(under_way, steps_); }
  // Pieces as first+count@step, and the finished step.
  std::string Report(size_t items_max = 1024) {
    const LocalWorkQueue::Report report = work.TakeReport(now, items_max);
    std::string shown;
    for (const proto::WorkItem& item : report.finished) {
      absl::StrAppend(&shown, item.first(), "+", item.count(), "@", item.step(), " ");
    }
    return absl::StrCat(shown, "=", report.finished_step);
  }

  LocalWorkQueue work;
  absl::Time now = kStart;

 private:
  StepNumbers steps_;
};

TEST(LocalWorkQueueTest, PiecesCarryTheStepThatTrainedThem) {
  Program program;
  program.work.Add(Item(0, 0, 4));
  program.work.Add(Item(0, 4, 4));
  program.Step(3, 7);
  program.Step(3, 9);  // The group has taken a step without this member.
  EXPECT_EQ(program.Report(), "0+3@7 =7");
  program.Finish(0);
  EXPECT_EQ(program.Report(), "3+3@9 =9") << "two items, one step";
  program.Take(2);
  program.Finish(0);
  EXPECT_EQ(program.Report(), "6+2@0 =9") << "it was in no step";
}

TEST(LocalWorkQueueTest, AReportThatIsCutShortTellsNoFinishedStep) {
  Program program;
  program.work.Add(Item(0, 0, 4));
  program.Step(1, 1);
  program.Step(1, 2);
  program.Finish(0);
  EXPECT_EQ(program.Report(1), "0+1@1 =0");
  EXPECT_EQ(program.Report(1), "1+1@2 =2");
}

TEST(LocalWorkQueueTest, StepsWithoutExamplesAreReportedOncePerInterval) {
  Program program;
  program.work.Add(Item(0, 0, 1));
  program.Step(1, 1);
  program.Finish(0);
  EXPECT_EQ(program.Report(), "0+1@1 =1");
  program.Step(1, 2);
  program.Finish(0);
  EXPECT_FALSE(program.work.HasReport(program.now)) << "too soon";
  program.now += LocalWorkQueue::kStepReportInterval;
  EXPECT_TRUE(program.work.HasReport(program.now));
  EXPECT_EQ(program.Report(), "=2");
  program.now += LocalWorkQueue::kStepReportInterval;
  EXPECT_FALSE(program.work.HasReport(program.now)) << "nothing new";
}

// What a report of 0.5 s holds: it is merged only where it must be.
TEST(LocalWorkQueueTest, ReportsOfFastStepsStayShort) {
  for (const uint64_t steps : {500u, 5000u}) {
    Program program;
    program.work.Add(Item(0, 0, steps));
    for (uint64_t step = 1; step <= steps; ++step) program.Step(1, step);
    program.Finish(0);
    const LocalWorkQueue::Report report = program.work.TakeReport(program.now, 1024);
    EXPECT_EQ(report.finished.size(), std::min<size_t>(steps, LocalWorkQueue::kPiecesMax));
    EXPECT_EQ(report.finished_step, steps);
    EXPECT_EQ(report.finished.back().step(), steps == 500 ? 500u : 0u);
    EXPECT_EQ(report.finished[0].step(), 1u);
  }
}

TEST(StepNumbersTest, AreKeptForSomeTime) {
  StepNumbers steps;
  steps.Begin();
  EXPECT_EQ(steps.Of(1), Step()) << "too early";
  steps.Set(1, Step(11));
  EXPECT_EQ(steps.Of(1), Step(11));
  EXPECT_EQ(steps.Of(1 + StepNumbers::kKept), Step());
  for (uint64_t i = 0; i < StepNumbers::kKept; ++i) {
    steps.Begin();
    steps.Set(steps.begun(), Step(11 + steps.begun()));
  }
  EXPECT_EQ(steps.Of(1), Step()) << "too long ago";
}

TEST(LocalWorkQueueTest, FastStepsWantMoreAhead) {
  const StepNumbers steps;
  LocalWorkQueue slow, fast;
  EXPECT_GE(slow.Wanted(absl::Milliseconds(200)), 1u);
  for (int i = 0; i < 50; ++i) {
    slow.Take(kStart + absl::Seconds(i), 10, steps);
    fast.Take(kStart + absl::Milliseconds(10 * i), 10, steps);
  }
  EXPECT_EQ(slow.Wanted(absl::Milliseconds(200)), 20u);
  EXPECT_NEAR(static_cast<double>(fast.Wanted(absl::Milliseconds(200))), 220, 11);
}

}  // namespace
}  // namespace covey::worker
