// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/initial_values.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/snapshot/testing/small_snapshot.h"
#include "scheduler/snapshots/restored_job.h"

namespace covey::scheduler {
namespace {

using Names = std::vector<std::string>;

TEST(InitialValuesTest, ASnapshotAndPerhapsTables) {
  EXPECT_EQ(InitialValuesChoice::Parse("latest").snapshot, "latest");
  EXPECT_EQ(InitialValuesChoice::Parse("latest").tables, Names());
  EXPECT_EQ(InitialValuesChoice::Parse("import-gpt2,h.0/weight,bias").snapshot, "import-gpt2");
  EXPECT_EQ(InitialValuesChoice::Parse("import-gpt2,h.0/weight,bias").tables,
            (Names{"h.0/weight", "bias"}));
  EXPECT_EQ(InitialValuesChoice::Parse("").snapshot, "");
}

TEST(InitialValuesTest, AllTablesOrTheChosenOnes) {
  const proto::SnapshotManifest manifest = SmallSnapshot::Make(17, 42).manifest;
  const auto all = InitialValuesOf({.snapshot = "latest", .tables = {}}, manifest);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->folder(), "snapshot-000017-e42");
  EXPECT_EQ(all->tables().size(), 2u);
  EXPECT_EQ(all->tables().at("weights"), 20u);
  EXPECT_EQ(all->tables().at("bias"), 3u);
  const auto one = InitialValuesOf({.snapshot = "latest", .tables = {"bias"}}, manifest);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->tables().size(), 1u);
  EXPECT_EQ(one->tables().at("bias"), 3u);
  const auto none = InitialValuesOf({.snapshot = "latest", .tables = {"bias", "x"}}, manifest);
  EXPECT_TRUE(absl::IsNotFound(none.status()));
  EXPECT_NE(none.status().message().find("no table 'x'"), std::string::npos) << none.status();
}

// An imported snapshot has no job that could be continued.
TEST(InitialValuesTest, AnImportIsNotRestored) {
  proto::SnapshotManifest manifest = SmallSnapshot::Make(17, 42).manifest;
  const JobSpec job = {.name = "small"};
  EXPECT_TRUE(RestoredJob(job, manifest).ok());
  manifest.set_id(0);
  manifest.set_folder("import-gpt2");
  const absl::Status status = RestoredJob(job, manifest).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_NE(status.message().find("--initial-values import-gpt2"), std::string::npos) << status;
}

}  // namespace
}  // namespace covey::scheduler
