// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/step_spans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace covey::worker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const absl::Time kStart = absl::UnixEpoch() + absl::Seconds(10);

absl::Time At(int ms) { return kStart + absl::Milliseconds(ms); }

class StepSpansTest : public testing::Test {
 protected:
  // "compute 0-3 of 7": in ms, and the step.
  std::vector<std::string> Recorded() {
    std::vector<std::string> spans;
    for (const proto::TracePiece& piece : process_.End(nullptr)) {
      const proto::TracedThread& thread = piece.threads(0);
      for (const proto::TracedSpan& span : thread.spans()) {
        const int64_t begin = (span.begin_ns() - absl::ToUnixNanos(kStart)) / 1000000;
        spans.push_back(absl::StrCat(thread.names(static_cast<int>(span.name())), " ", begin, "-",
                                     begin + static_cast<int64_t>(span.duration_ns() / 1000000),
                                     " of ", span.step()));
      }
    }
    return spans;
  }

  ProcessTrace process_{1};
  StepSpans spans_{process_.AddThread("program")};
};

TEST_F(StepSpansTest, AStepIsComputationInputAndWaits) {
  process_.Begin(100);
  spans_.Begin(At(0), 7);
  spans_.BeginInput(At(1));
  spans_.EndInput(At(3));
  spans_.Waited("weights", At(6), At(8));
  spans_.Waited("bias", At(8), At(9));
  spans_.End(At(11));
  spans_.End(At(12));
  EXPECT_THAT(Recorded(), ElementsAre("compute 0-1 of 7", "input 1-3 of 7", "compute 3-6 of 7",
                                      "wait for weights 6-8 of 7", "wait for bias 8-9 of 7",
                                      "compute 9-11 of 7", "step 0-11 of 7"));
}

TEST_F(StepSpansTest, AWaitDuringInputLiesWithinIt) {
  process_.Begin(100);
  spans_.Begin(At(0), 1);
  spans_.BeginInput(At(0));
  spans_.Waited("weights", At(2), At(4));
  spans_.End(At(5));
  EXPECT_THAT(Recorded(),
              ElementsAre("wait for weights 2-4 of 1", "input 0-5 of 1", "step 0-5 of 1"));
}

TEST_F(StepSpansTest, TheNextStepEndsTheOneBefore) {
  process_.Begin(100);
  spans_.Begin(At(0), 1);
  spans_.Begin(At(4), 2);
  spans_.End(At(5));
  EXPECT_THAT(Recorded(), ElementsAre("compute 0-4 of 1", "step 0-4 of 1", "compute 4-5 of 2",
                                      "step 4-5 of 2"));
}

TEST_F(StepSpansTest, AStepThatBeganBeforeTheTraceIsLeftOut) {
  spans_.Begin(At(0), 1);
  process_.Begin(100);
  spans_.Waited("weights", At(1), At(2));
  spans_.BeginInput(At(2));
  spans_.EndInput(At(3));
  spans_.End(At(4));
  EXPECT_THAT(Recorded(), ElementsAre("wait for weights 1-2 of 0"));
}

TEST_F(StepSpansTest, AWaitBetweenTwoStepsStandsAlone) {
  process_.Begin(100);
  spans_.Begin(At(0), 1);
  spans_.End(At(1));
  spans_.Waited("weights", At(2), At(3));
  spans_.Begin(At(3), 2);
  spans_.End(At(4));
  EXPECT_THAT(Recorded(),
              ElementsAre("compute 0-1 of 1", "step 0-1 of 1", "wait for weights 2-3 of 0",
                          "compute 3-4 of 2", "step 3-4 of 2"));
}

TEST_F(StepSpansTest, WithoutATraceThereIsNothing) {
  spans_.Begin(At(0), 1);
  spans_.Waited("weights", At(1), At(2));
  spans_.End(At(4));
  process_.Begin(100);
  EXPECT_THAT(Recorded(), IsEmpty());
}

}  // namespace
}  // namespace covey::worker
