// SPDX-License-Identifier: Apache-2.0
#include "client/resume_token.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/cluster/limits.h"

namespace covey::client {
namespace {

constexpr absl::string_view kFormat = "rows1";
constexpr size_t kQuotedMax = 40;

bool ParseVersion(absl::string_view text, ShardVersion& version) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '.');
  uint64_t number = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &version.generation) ||
      !absl::SimpleAtoi(parts[1], &number)) {
    return false;
  }
  version.version = Version(number);
  return true;
}

bool ParseInto(absl::string_view text, ResumeToken& token) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 3));
  uint32_t table = 0;
  if (parts.size() != 4 || parts[0] != kFormat || !absl::SimpleHexAtoi(parts[1], &token.run) ||
      !absl::SimpleAtoi(parts[2], &table)) {
    return false;
  }
  token.table = TableId(table);
  for (const absl::string_view shard : absl::StrSplit(parts[3], ',')) {
    if (token.shards.size() == kKeySlots) return false;
    if (!ParseVersion(shard, token.shards.emplace_back())) return false;
  }
  return true;
}

}  // namespace

std::string ResumeToken::ToText() const {
  return absl::StrCat(kFormat, ":", absl::Hex(run), ":", table.value(), ":",
                      absl::StrJoin(shards, ",", [](std::string* out, const ShardVersion& shard) {
                        absl::StrAppend(out, shard.generation, ".", shard.version.value());
                      }));
}

absl::StatusOr<ResumeToken> ResumeToken::Parse(absl::string_view text) {
  ResumeToken token;
  if (ParseInto(text, token)) return token;
  return absl::InvalidArgumentError(
      absl::StrCat("'", text.substr(0, kQuotedMax),
                   "' is no resume token; pass the text that an earlier reader gave, unchanged"));
}

}  // namespace covey::client
