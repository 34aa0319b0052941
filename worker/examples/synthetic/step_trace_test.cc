// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/synthetic/step_trace.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::synthetic {
namespace {

std::string Content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(StepTraceTest, WorkersShareAFile) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/shared.jsonl");
  absl::StatusOr<StepTrace> one = StepTrace::Open(path);
  absl::StatusOr<StepTrace> other = StepTrace::Open(path);
  ASSERT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
  other->Add(3, 1, absl::Milliseconds(12.5), absl::Milliseconds(13));
  one->Add(0, 1, absl::Seconds(2), absl::Seconds(3));
  ASSERT_TRUE(other->Flush().ok());
  ASSERT_TRUE(one->Flush().ok());
  EXPECT_EQ(Content(path),
            "{\"worker\":3,\"step\":1,\"compute_seconds\":0.012500,\"step_seconds\":0.013000}\n"
            "{\"worker\":0,\"step\":1,\"compute_seconds\":2.000000,\"step_seconds\":3.000000}\n");
}

TEST(StepTraceTest, NothingIsLostWithoutAFlush) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/long.jsonl");
  constexpr int kSteps = 1000;
  {
    absl::StatusOr<StepTrace> trace = StepTrace::Open(path);
    ASSERT_TRUE(trace.ok()) << trace.status();
    for (int step = 1; step <= kSteps; ++step) trace->Add(0, step, absl::Milliseconds(1), {});
  }
  const std::string content = Content(path);
  EXPECT_EQ(std::count(content.begin(), content.end(), '\n'), kSteps);
  EXPECT_THAT(content, ::testing::HasSubstr("\"step\":1000,"));
}

TEST(StepTraceTest, NoFileIsFineAndABadOneIsNamed) {
  absl::StatusOr<StepTrace> none = StepTrace::Open("");
  ASSERT_TRUE(none.ok());
  none->Add(0, 1, absl::Seconds(1), {});
  EXPECT_TRUE(none->Flush().ok());
  EXPECT_THAT(std::string(StepTrace::Open("/no/such/file").status().message()),
              ::testing::HasSubstr("opening /no/such/file: No such"));
}

}  // namespace
}  // namespace covey::synthetic
