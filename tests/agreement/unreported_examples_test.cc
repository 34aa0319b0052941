// SPDX-License-Identifier: Apache-2.0

// What a worker has trained and the scheduler has not heard of is trained a second time when the
// worker dies. worker/data_source.h says how much that is.

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "scheduler/state/cluster_state_fixture.h"
#include "scheduler/work/data_dispatcher.h"
#include "worker/data/local_work_queue.h"
#include "worker/data/step_numbers.h"

namespace covey {
namespace {

using scheduler::DataDispatcher;
using worker::LocalWorkQueue;

constexpr uint64_t kBatch = 4;
constexpr absl::Duration kRun = absl::Seconds(20);

// A worker that makes steps of this duration, and reports as DataSource does: one report at a time.
// Returns for how long an example was trained and not reported, at most.
absl::Duration LongestUnreported(absl::Duration step) {
  scheduler::TestState state;
  DataDispatcher dispatcher(state);
  absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  dispatcher.Start(now, now);
  uint64_t last_id = 0;
  const auto send = [&](uint32_t wanted, std::vector<proto::WorkItem> finished) {
    Message message;
    message.envelope.mutable_header()->set_node(2);
    message.envelope.mutable_header()->set_request_id(++last_id);
    proto::WorkRequest& request = *message.envelope.mutable_work_request();
    request.set_name("digits");
    request.set_examples(1'000'000);
    request.set_item_examples(1'000);
    request.set_passes(1);
    request.set_wanted(wanted);
    for (proto::WorkItem& item : finished) *request.add_finished() = std::move(item);
    std::vector<DataDispatcher::Answer> answers;
    dispatcher.OnRequest(now, message, answers);
    return answers;
  };

  LocalWorkQueue work;
  const worker::StepNumbers steps;
  const proto::WorkReply given = send(100, {}).front().reply;
  for (const proto::WorkItem& item : given.items()) work.Add(item);
  bool reporting = false;
  std::optional<absl::Time> trained;  // the oldest step that is not reported
  absl::Duration longest;
  const absl::Time end = now + kRun;
  for (absl::Time next_step = now; now < end; now += absl::Milliseconds(1)) {
    if (now >= next_step) {
      next_step += step;
      work.Take(now, kBatch, steps);
      work.Finish(1, steps);
      if (!trained && work.HasReport(now)) trained = now;
    }
    std::vector<DataDispatcher::Answer> answers;
    if (dispatcher.NextTick() <= now) dispatcher.Tick(now, answers);
    if (!answers.empty()) reporting = false;
    if (trained) longest = std::max(longest, now - *trained);
    if (!reporting && work.HasReport(now)) {
      reporting = send(0, work.TakeReport(now, 1'000).finished).empty();
      trained.reset();
    }
  }
  return longest;
}

TEST(UnreportedExamplesTest, AreThoseOfHalfASecond) {
  const absl::Duration longest = LongestUnreported(absl::Milliseconds(10));
  EXPECT_LE(longest, DataDispatcher::kRecordInterval);
  EXPECT_GE(longest, DataDispatcher::kRecordInterval - absl::Milliseconds(20)) << "not less";
}

TEST(UnreportedExamplesTest, AreReportedAtOnceWhenStepsAreLonger) {
  EXPECT_LE(LongestUnreported(absl::Milliseconds(700)), absl::Milliseconds(1));
}

}  // namespace
}  // namespace covey
