// SPDX-License-Identifier: Apache-2.0
#include "client/cli/rows/rows_manifest.h"

#include <nlohmann/json.hpp>
#include <string>

#include "client/cli/console/text_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::cli {
namespace {

using ::testing::HasSubstr;

ExportedRows Exported() {
  ExportedRows exported{.rows = 3, .removed = 0};
  exported.origin.job = "j";
  exported.origin.table.mutable_spec()->set_name("items");
  exported.origin.table.mutable_spec()->mutable_sparse()->set_width(16);
  exported.origin.token = {.run = 0xab, .table = TableId(4), .shards = {{2, Version(9)}}};
  exported.origin.samples = 512;
  exported.files = {{.name = "keys.npy", .bytes = 152, .crc32 = 0xbeef}};
  return exported;
}

class RowsManifestTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& text) const {
    EXPECT_TRUE(WriteTextFile(folder_->path() + "/manifest.json", text).ok());
    return folder_->path();
  }
  const std::unique_ptr<TemporaryFolder> folder_ = *TemporaryFolder::Make();
};

TEST_F(RowsManifestTest, SaysWhatTheFilesHold) {
  ExportedRows exported = Exported();
  nlohmann::json json = nlohmann::json::parse(RowsManifest(exported));
  EXPECT_EQ(json["table"], "items");
  EXPECT_EQ(json["width"], 16);
  EXPECT_EQ(json["holds"], "all");
  EXPECT_EQ(json["rows"], 3);
  EXPECT_EQ(json["samples"], 512);
  EXPECT_TRUE(json["snapshot"].is_null());
  EXPECT_FALSE(json.contains("since"));
  EXPECT_EQ(json["resume_token"], "rows1:ab:4:2.9");
  EXPECT_EQ(json["shards"][0]["version"], 9);
  EXPECT_EQ(json["files"][0]["crc32"], "0000beef");
  EXPECT_EQ(json["definition"]["sparse"]["width"], 16);
  exported.origin.snapshot = "snapshot-000003-e12";
  exported.origin.since = exported.origin.token;
  json = nlohmann::json::parse(RowsManifest(exported));
  EXPECT_EQ(json["holds"], "changes");
  EXPECT_EQ(json["since"], "rows1:ab:4:2.9");
  EXPECT_EQ(json["snapshot"], "snapshot-000003-e12");
}

TEST_F(RowsManifestTest, IsWhereChangesBegin) {
  const ExportedRows exported = Exported();
  const std::string folder = Write(RowsManifest(exported));
  EXPECT_EQ(*TokenOfExport(folder), exported.origin.token);
  EXPECT_EQ(*TokenOfExport(folder + "/manifest.json"), exported.origin.token);
}

TEST_F(RowsManifestTest, OtherFilesAreRefusedByName) {
  for (const std::string text : {"", "{", "[]", "7", "{}", R"({"format": "covey-rows"})",
                                 R"({"format": "covey-rows", "resume_token": 7})",
                                 R"({"format": 7, "resume_token": "rows1:ab:4:2.9"})"}) {
    const absl::Status status = TokenOfExport(Write(text)).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("is no manifest of exported rows"));
  }
  const absl::Status status =
      TokenOfExport(Write(R"({"format": "covey-rows", "resume_token": "x"})")).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("manifest.json: 'x' is no resume token"));
  EXPECT_THAT(std::string(TokenOfExport("/none").status().message()), HasSubstr("/none"));
}

}  // namespace
}  // namespace covey::cli
