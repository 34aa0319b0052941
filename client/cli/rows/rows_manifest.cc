// SPDX-License-Identifier: Apache-2.0
#include "client/cli/rows/rows_manifest.h"

#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/console/json_text.h"
#include "client/cli/console/text_file.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"

namespace covey::cli {
namespace {

constexpr char kFormat[] = "covey-rows";
constexpr int kVersionOfFormat = 1;

}  // namespace

uint64_t ExportedRows::bytes() const {
  uint64_t sum = 0;
  for (const FolderFile::Summary& file : files) sum += file.bytes;
  return sum;
}

std::string RowsManifest(const ExportedRows& exported) {
  const RowsOrigin& origin = exported.origin;
  nlohmann::ordered_json json = {
      {"format", kFormat},
      {"version", kVersionOfFormat},
      {"covey_version", kVersion},
      {"job", origin.job},
      {"table", origin.table.spec().name()},
      {"width", origin.table.spec().sparse().width()},
      // "all" rows, or "changes" since an earlier export.
      {"holds", origin.since ? "changes" : "all"},
      {"rows", exported.rows},
      {"removed", exported.removed},
      {"order", "ascending by key"},
  };
  json["snapshot"] = nullptr;
  if (!origin.snapshot.empty()) json["snapshot"] = origin.snapshot;
  if (origin.since) json["since"] = origin.since->ToText();
  json["resume_token"] = origin.token.ToText();
  json["samples"] = origin.samples;
  nlohmann::ordered_json shards = nlohmann::ordered_json::array();
  for (const client::ShardVersion& shard : origin.token.shards) {
    shards.push_back({{"generation", shard.generation}, {"version", shard.version.value()}});
  }
  json["shards"] = std::move(shards);
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const FolderFile::Summary& file : exported.files) {
    files.push_back({{"name", file.name},
                     {"bytes", file.bytes},
                     {"crc32", absl::StrFormat("%08x", file.crc32)}});
  }
  json["files"] = std::move(files);
  json["definition"] = ToJson(origin.table.spec());
  return JsonText(json);
}

absl::StatusOr<client::ResumeToken> TokenOfExport(const std::string& path) {
  struct stat found;
  const bool is_folder = stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
  const std::string file = is_folder ? absl::StrCat(path, "/", kRowsManifestName) : path;
  COVEY_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(file));
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("format", nlohmann::json()) != kFormat ||
      !json.contains("resume_token") || !json["resume_token"].is_string()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, " is no manifest of exported rows; name the folder that an earlier ",
                     "`covey export-rows` has written"));
  }
  const auto token = client::ResumeToken::Parse(json["resume_token"].get<std::string>());
  if (!token.ok()) return Annotate(file, token.status());
  return token;
}

}  // namespace covey::cli
