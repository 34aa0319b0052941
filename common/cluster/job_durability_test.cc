// SPDX-License-Identifier: Apache-2.0
#include "common/cluster/job_durability.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using ::testing::HasSubstr;

JobDurability Parsed(absl::string_view text) { return JobDurability::Parse(text).value(); }

std::string Refusal(const absl::Status& status) { return std::string(status.message()); }

TEST(JobDurabilityTest, IsReadAndShown) {
  for (const char* text : {"memory", "replicated", "flushed:2s", "flushed:1m30s"}) {
    const auto parsed = JobDurability::Parse(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->Show(), text);
  }
  EXPECT_EQ(Parsed("memory"), JobDurability());
  EXPECT_EQ(Parsed("flushed:10min").flush_every, absl::Minutes(10));
  EXPECT_EQ(Parsed("replicated").flush_every, absl::InfiniteDuration());
}

TEST(JobDurabilityTest, AnythingElseIsRefused) {
  for (const char* text : {"", "disk", "flushed", "flushed:", "flushed:2", "flushed:s", "memory:2s",
                           "flushed:900ms", "flushed:-2s", "flushed:25h", "flushed:inf"}) {
    EXPECT_EQ(JobDurability::Parse(text).status().code(), absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(JobDurabilityTest, NeedsTheMeansToKeepIt) {
  EXPECT_THAT(Refusal(Parsed("flushed:2s").CheckMeans({.has_store = false, .servers = 4})),
              HasSubstr("flushed:2s needs a store"));
  EXPECT_TRUE(Parsed("flushed:2s").CheckMeans({.has_store = true, .servers = 1}).ok());
  EXPECT_THAT(Refusal(Parsed("replicated").CheckMeans({.has_store = true, .servers = 1})),
              HasSubstr("at least two servers"));
  EXPECT_TRUE(Parsed("replicated").CheckMeans({.has_store = false, .servers = 2}).ok());
  EXPECT_TRUE(Parsed("memory").CheckMeans({.has_store = false, .servers = 1}).ok());
}

TEST(JobDurabilityTest, ReplicatedWantsTwoReplicasOfEachTable) {
  proto::TableSpec spec;
  spec.set_name("weights");
  EXPECT_TRUE(Parsed("replicated").CheckTable(spec).ok());
  spec.set_durability(proto::MEMORY);
  EXPECT_THAT(Refusal(Parsed("replicated").CheckTable(spec)),
              HasSubstr("'weights' asks for one replica"));
  EXPECT_TRUE(Parsed("memory").CheckTable(spec).ok());
  EXPECT_TRUE(Parsed("flushed:2s").CheckTable(spec).ok());
}

}  // namespace
}  // namespace covey
