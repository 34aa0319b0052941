// SPDX-License-Identifier: Apache-2.0
#include "common/cluster/job_durability.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/cluster/placement.h"

namespace covey {
namespace {

constexpr absl::Duration kFlushEveryMin = absl::Seconds(1);
constexpr absl::Duration kFlushEveryMax = absl::Hours(24);

}  // namespace

absl::StatusOr<JobDurability> JobDurability::Parse(absl::string_view text) {
  if (text == "memory") return JobDurability{.kind = Kind::kMemory};
  if (text == "replicated") return JobDurability{.kind = Kind::kReplicated};
  JobDurability flushed{.kind = Kind::kFlushed};
  absl::string_view interval = text;
  // absl writes minutes as "m".
  if (!absl::ConsumePrefix(&interval, "flushed:") ||
      !absl::ParseDuration(absl::StrReplaceAll(interval, {{"min", "m"}}), &flushed.flush_every)) {
    return absl::InvalidArgumentError(
        "choose memory, replicated, or flushed with an interval, as in flushed:2s");
  }
  if (flushed.flush_every < kFlushEveryMin || flushed.flush_every > kFlushEveryMax) {
    return absl::InvalidArgumentError("flushed takes an interval of 1s to 24h");
  }
  return flushed;
}

std::string JobDurability::Show() const {
  switch (kind) {
    case Kind::kMemory:
      return "memory";
    case Kind::kReplicated:
      return "replicated";
    case Kind::kFlushed:
      return absl::StrCat("flushed:", absl::FormatDuration(flush_every));
  }
  return "";
}

absl::Status JobDurability::CheckMeans(const Means& means) const {
  if (kind == Kind::kFlushed && !means.has_store) {
    return absl::InvalidArgumentError(absl::StrCat(
        "durability ", Show(), " needs a store to flush to: name its folder with --store DIR"));
  }
  if (kind == Kind::kReplicated && means.servers < 2) {
    return absl::InvalidArgumentError(
        "durability replicated needs at least two servers: start more with --servers 2, or choose "
        "memory");
  }
  return absl::OkStatus();
}

absl::Status JobDurability::CheckTable(const proto::TableSpec& spec) const {
  if (kind != Kind::kReplicated || ReplicasWanted(spec) >= 2) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("table '", spec.name(),
                   "' asks for one replica, and the job's durability is replicated: leave the "
                   "table's durability out, or start the job with --durability memory"));
}

}  // namespace covey
