// SPDX-License-Identifier: Apache-2.0
#include "client/cli/snapshot/snapshot_view.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/snapshot/testing/small_snapshot.h"

namespace covey::cli {
namespace {

std::vector<SnapshotSummary> Snapshots() {
  return {{.folder = "snapshot-000003-e7",
           .id = 3,
           .epoch = 7,
           .complete = {},
           .bytes = 2048,
           .reused_bytes = 512,
           .ordered_unix_ms = 1'700'000'180'000,
           .tables = 2,
           .step = 1300},
          {.folder = "snapshot-000004-e7",
           .id = 4,
           .epoch = 7,
           .complete = absl::NotFoundError("snapshot-000004-e7/MANIFEST is missing")}};
}

TEST(SnapshotViewTest, Lists) {
  EXPECT_EQ("no snapshots\n", SnapshotsText({}));
  EXPECT_EQ(
      "NAME                ID        ORDERED (UTC)   STEP  TABLES    BYTES  REUSED  STATE\n"
      "snapshot-000003-e7   3  2023-11-14 22:16:20  1,300       2  2.0 KiB   512 B  complete\n"
      "snapshot-000004-e7   4                    -      -       -        -       -  not complete: "
      "snapshot-000004-e7/MANIFEST is missing\n",
      SnapshotsText(Snapshots()));
  const auto json = nlohmann::json::parse(SnapshotsJson(Snapshots()));
  EXPECT_EQ(nlohmann::json({{"name", "snapshot-000003-e7"},
                            {"id", 3},
                            {"epoch", 7},
                            {"imported", false},
                            {"complete", true},
                            {"reason", ""},
                            {"ordered_unix_ms", 1'700'000'180'000},
                            {"step", 1300},
                            {"tables", 2},
                            {"bytes", 2048},
                            {"reused_bytes", 512}}),
            json[0]);
  EXPECT_EQ(false, json[1]["complete"]);
  EXPECT_EQ("snapshot-000004-e7/MANIFEST is missing", json[1]["reason"]);
}

TEST(SnapshotViewTest, AnImportedOneHasNoStep) {
  const SnapshotSummary imported = {.folder = "import-gpt2",
                                    .complete = {},
                                    .bytes = 2048,
                                    .ordered_unix_ms = 1'700'000'180'000,
                                    .tables = 2};
  EXPECT_EQ(
      "NAME         ID        ORDERED (UTC)  STEP  TABLES    BYTES  REUSED  STATE\n"
      "import-gpt2   -  2023-11-14 22:16:20     -       2  2.0 KiB     0 B  complete, imported\n",
      SnapshotsText({imported}));
  const SnapshotSummary unfinished = {.folder = "import-x",
                                      .complete = absl::NotFoundError("none")};
  EXPECT_EQ(
      "NAME      ID  ORDERED (UTC)  STEP  TABLES  BYTES  REUSED  STATE\n"
      "import-x   -              -     -       -      -       -  not complete: none\n",
      SnapshotsText({unfinished}));
  EXPECT_EQ(true, nlohmann::json::parse(SnapshotsJson({imported}))[0]["imported"]);
  proto::SnapshotManifest manifest;
  manifest.set_folder("import-gpt2");
  manifest.set_ordered_unix_ms(1'700'000'180'000);
  EXPECT_EQ("import-gpt2: imported 2023-11-14 22:16:20 UTC, 3.0 KiB in 1 files\n\nno tables\n",
            SnapshotText(manifest, 3072));
}

TEST(SnapshotViewTest, ShowsOne) {
  proto::SnapshotManifest manifest = SmallSnapshot::Make(17, 42).manifest;
  manifest.mutable_shards(1)->set_version(341);
  manifest.mutable_shards(1)->set_samples(10'881);
  // Of a pass that has begun before the present one is finished.
  proto::WorkItem& ahead = *manifest.mutable_state()->mutable_work(0)->add_finished();
  ahead.set_pass(2);
  ahead.set_count(40);
  EXPECT_EQ(
      "snapshot-000017-e42: job small, ordered 2023-11-14 22:30:20 UTC in epoch 42, 3.0 KiB in 3 "
      "files\n\n"
      "TABLE    SHAPE  SHARDS  VALUES     VERSION           SAMPLES\n"
      "weights    5x4       2    80 B  340 to 341  10,880 to 10,881\n"
      "bias         3       1    12 B         340            10,880\n"
      "\n"
      "GROUP  LAST STEP\n"
      "    1      1,700\n"
      "\n"
      "DATA SET  PASSES DONE  DONE OF THE NEXT PASS\n"
      "train          1 of 3  250 of 1,000 examples\n",
      SnapshotText(manifest, 3072));
  const auto json = nlohmann::json::parse(SnapshotJson(manifest, 3072));
  EXPECT_EQ(nlohmann::json({{"name", "weights"},
                            {"shape", {5, 4}},
                            {"shards", 2},
                            {"value_bytes", 80},
                            {"log_bytes", 0},
                            {"version", {{"least", 340}, {"most", 341}}},
                            {"samples", {{"least", 10'880}, {"most", 10'881}}}}),
            json["tables"][0]);
  EXPECT_EQ(nlohmann::json::parse(R"([{"group": 1, "last_step": 1700}])"), json["groups"]);
  EXPECT_EQ(nlohmann::json::parse(R"([{"name": "train", "examples": 1000, "passes": 3,
                                       "passes_done": 1, "examples_done_of_next_pass": 250}])"),
            json["data_sets"]);
  auto head = json;
  EXPECT_TRUE(json["omitted"].empty());
  for (const char* list : {"tables", "groups", "data_sets", "omitted"}) head.erase(list);
  EXPECT_EQ(nlohmann::json({{"name", "snapshot-000017-e42"},
                            {"id", 17},
                            {"epoch", 42},
                            {"imported", false},
                            {"job", "small"},
                            {"ordered_unix_ms", manifest.ordered_unix_ms()},
                            {"bytes", 3072},
                            {"files", 3},
                            {"reused_bytes", 0},
                            {"reused_files", 0}}),
            head);
  manifest.mutable_state()->mutable_view()->set_job_name("\xff");
  EXPECT_EQ("\uFFFD", nlohmann::json::parse(SnapshotJson(manifest, 3072))["job"]);
}

TEST(SnapshotViewTest, ShowsWhatItUsesOfEarlierOnes) {
  const SmallSnapshot earlier = SmallSnapshot::Make(12, 40);
  const proto::SnapshotManifest manifest = SmallSnapshot::MakeAfter(earlier, 17, 42).manifest;
  EXPECT_NE(std::string::npos,
            SnapshotText(manifest, 2048)
                .find(", 2.0 KiB in 2 files, and 640 B in 1 files of earlier snapshots\n"))
      << SnapshotText(manifest, 2048);
  const auto json = nlohmann::json::parse(SnapshotJson(manifest, 2048));
  EXPECT_EQ(2, json["files"]);
  EXPECT_EQ(1, json["reused_files"]);
  EXPECT_EQ(640, json["reused_bytes"]);
  EXPECT_EQ(
      "snapshot-000017-e42/part-2-1-000.cvp\n"
      "snapshot-000012-e40/part-3-1-000.cvp\n"
      "snapshot-000017-e42/MANIFEST\n",
      SnapshotFilesText(manifest));
  EXPECT_EQ(nlohmann::json::parse(R"(["snapshot-000017-e42/part-2-1-000.cvp",
                                      "snapshot-000012-e40/part-3-1-000.cvp",
                                      "snapshot-000017-e42/MANIFEST"])"),
            nlohmann::json::parse(SnapshotFilesJson(manifest)));
}

TEST(SnapshotViewTest, SaysWhatIsNotInIt) {
  proto::SnapshotManifest manifest = SmallSnapshot::Make(17, 42).manifest;
  proto::ClusterView& view = *manifest.mutable_state()->mutable_view();
  const auto omitted = [&] {
    const std::string text = SnapshotText(manifest, 1);
    const auto json = nlohmann::json::parse(SnapshotJson(manifest, 1));
    const auto all = json["omitted"].get<std::vector<std::string>>();
    for (const std::string& one : all) {
      EXPECT_NE(text.find("\nNot in it: " + one + "\n"), std::string::npos);
    }
    return all;
  };
  const std::vector<std::string> rounding = {
      "rounding errors that workers keep for their next gradients (weights)"};
  view.mutable_tables(0)->mutable_spec()->set_gradient_format(proto::WIRE_INT8_BLOCK);
  EXPECT_EQ(omitted(), rounding);
  for (proto::SnapshotShard& shard : *manifest.mutable_shards()) shard.set_last_step(1700);
  view.set_feedback_flush_steps(100);
  EXPECT_EQ(omitted(), std::vector<std::string>());
  view.set_feedback_flush_steps(150);
  EXPECT_EQ(omitted(), rounding) << "step 1700 is not one of these";
  proto::Contract& contract = *view.mutable_tables(1)->mutable_spec()->mutable_contract();
  contract.set_kind(proto::Contract::LOCAL);
  contract.set_local_steps(10);
  view.set_feedback_flush_steps(100);
  EXPECT_EQ(omitted(),
            std::vector<std::string>({"the state of inner optimizers, which workers hold (bias)"}));
}

}  // namespace
}  // namespace covey::cli
