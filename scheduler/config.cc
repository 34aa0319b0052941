// SPDX-License-Identifier: Apache-2.0
#include "scheduler/config.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"

namespace covey::scheduler {
namespace {

absl::Status Bad(absl::string_view setting, const absl::AlphaNum& value,
                 absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat(setting, " = ", value, ": ", allowed));
}

}  // namespace

JobSpec Config::job() const {
  return {.name = job_name,
          .servers = servers,
          .groups = groups,
          .workers_per_group = workers_per_group,
          .plans_groups = plans_groups,
          .elastic = elastic,
          .feedback_flush_steps = store.empty() ? 0 : feedback_flush_steps,
          .run = run,
          .durability = durability};
}

MembershipOptions Config::membership_options() const {
  return {.heartbeat = heartbeat,
          .silence_min = silence_min,
          .restart_grace = restart_grace,
          .lease = lease,
          .own_host = own_host};
}

GroupsOptions Config::groups_options() const {
  return {.placement_wait = placement_wait, .regroup_after = regroup_after};
}

ChainsOptions Config::chains_options() const {
  return {.on_loss = on_loss, .replacement_wait = replacement_wait};
}

SnapshotsOptions Config::snapshots_options() const {
  return {.has_store = !store.empty(),
          .every = snapshot_every,
          .every_samples = snapshot_every_samples,
          .flush_every = durability.flush_every,
          .kept = snapshots_kept,
          .deadline = snapshot_deadline,
          .wall_clock_ahead = wall_clock_ahead};
}

absl::Status Config::SetSnapshotEvery(absl::string_view text) {
  snapshot_every = SnapshotsOptions().every;
  snapshot_every_samples = 0;
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    double samples = 0;
    absl::string_view number = part;
    // absl writes minutes as "m".
    const std::string duration = absl::StrReplaceAll(part, {{"min", "m"}});
    if (absl::ConsumeSuffix(&number, "samples")) {
      if (!absl::SimpleAtod(number, &samples) || !(samples >= 1 && samples <= 1e18)) {
        return absl::InvalidArgumentError(
            "no interval; write a number of examples like 1e6samples");
      }
      snapshot_every_samples = static_cast<uint64_t>(samples);
    } else if (!absl::ParseDuration(duration, &snapshot_every)) {
      return absl::InvalidArgumentError("no interval; write a duration like 10min, or 1e6samples");
    }
  }
  return absl::OkStatus();
}

std::string Config::SnapshotEvery() const {
  std::string text;
  if (snapshot_every != absl::InfiniteDuration()) text = absl::FormatDuration(snapshot_every);
  if (snapshot_every_samples > 0) {
    absl::StrAppend(&text, text.empty() ? "" : ",", snapshot_every_samples, "samples");
  }
  return text;
}

absl::Status Config::SetDurability(absl::string_view text) {
  absl::StatusOr<JobDurability> parsed = JobDurability::Parse(text);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("no durability; ", parsed.status().message()));
  }
  durability = *std::move(parsed);
  return absl::OkStatus();
}

absl::Status Config::Validate() const {
  if (job_name.empty() || job_name.size() > kNameBytesMax) {
    return Bad("job", absl::StrCat("'", job_name, "'"),
               absl::StrCat("a name of 1 to ", kNameBytesMax, " bytes is needed"));
  }
  if (servers < 1 || servers > kNodesMax / 2) {
    return Bad("servers", servers, absl::StrCat("1 to ", kNodesMax / 2, " are allowed"));
  }
  if (plans_groups && (workers_per_group < 1 || workers_per_group > kNodesMax / 2)) {
    return Bad("workers", workers_per_group,
               absl::StrCat("1 to ", kNodesMax / 2, " are allowed with automatic groups"));
  }
  if (!plans_groups && (workers_per_group < 1 || workers_per_group > kGroupMembersMax)) {
    return Bad("workers", workers_per_group,
               absl::StrCat("a group has 1 to ", kGroupMembersMax, " workers"));
  }
  if (groups > kNodesMax / 2 / workers_per_group) {
    return Bad("groups", groups,
               absl::StrCat("at most ", kNodesMax / 2 / workers_per_group, " groups of ",
                            workers_per_group, " workers are allowed"));
  }
  if (heartbeat < absl::Milliseconds(10) || heartbeat > absl::Minutes(1)) {
    return Bad("heartbeat", absl::FormatDuration(heartbeat), "10ms to 1m are allowed");
  }
  if (silence_min < 2 * heartbeat || silence_min > absl::Hours(1)) {
    return Bad("silence-min", absl::FormatDuration(silence_min),
               "at least two heartbeats and at most 1h are allowed");
  }
  if (restart_grace < absl::ZeroDuration() || restart_grace > absl::Hours(1)) {
    return Bad("restart-grace", absl::FormatDuration(restart_grace), "0 to 1h are allowed");
  }
  if (placement_wait < absl::ZeroDuration() || placement_wait > absl::Hours(1)) {
    return Bad("placement-wait", absl::FormatDuration(placement_wait), "0 to 1h are allowed");
  }
  if (replacement_wait < absl::ZeroDuration() || replacement_wait > absl::Hours(1)) {
    return Bad("replacement-wait", absl::FormatDuration(replacement_wait), "0 to 1h are allowed");
  }
  if (drain_deadline < absl::ZeroDuration() || drain_deadline > absl::Hours(1)) {
    return Bad("drain-deadline", absl::FormatDuration(drain_deadline), "0 to 1h are allowed");
  }
  if (lease != absl::ZeroDuration() && (lease < 2 * heartbeat || lease > absl::Hours(1))) {
    return Bad("lease", absl::FormatDuration(lease),
               "0 (none), or two heartbeats to 1h are allowed");
  }
  if (regroup_after < absl::ZeroDuration() || regroup_after > absl::Hours(1)) {
    return Bad("regroup-after", absl::FormatDuration(regroup_after), "0 to 1h are allowed");
  }
  if (!(stragglers.slow_ratio > stragglers.recovered_ratio) || stragglers.slow_ratio > 1000) {
    return Bad("straggler-ratio", stragglers.slow_ratio,
               absl::StrCat("more than ", stragglers.recovered_ratio,
                            " (recovered) and at most 1000 is needed"));
  }
  if (stragglers.partial_minimum >= kGroupMembersMax) {
    return Bad("partial-reduce-minimum", stragglers.partial_minimum,
               absl::StrCat("less than ", kGroupMembersMax, " is allowed"));
  }
  if (stragglers.partial_grace < absl::ZeroDuration() ||
      stragglers.partial_grace > absl::Minutes(1)) {
    return Bad("partial-reduce-grace", absl::FormatDuration(stragglers.partial_grace),
               "0 (automatic) to 1m are allowed");
  }
  if (stragglers.group_members_min < 1 || stragglers.group_members_min > kGroupMembersMax) {
    return Bad("group-members-min", stragglers.group_members_min,
               absl::StrCat("1 to ", kGroupMembersMax, " are allowed"));
  }
  if (stragglers.probation < absl::Seconds(1) || stragglers.probation > absl::Hours(24)) {
    return Bad("straggler-probation", absl::FormatDuration(stragglers.probation),
               "1s to 24h are allowed");
  }
  const bool wants_snapshots = snapshot_every != absl::InfiniteDuration() ||
                               snapshot_every_samples > 0 || !resume.empty() ||
                               !initial_values.empty();
  if (wants_snapshots && store.empty()) {
    return absl::InvalidArgumentError(
        "snapshot-every, resume and initial-values need a store: name its folder with --store DIR");
  }
  COVEY_RETURN_IF_ERROR(durability.CheckMeans({.has_store = !store.empty(), .servers = servers}));
  if (snapshot_every < absl::Seconds(1)) {
    return Bad("snapshot-every", absl::FormatDuration(snapshot_every), "at least 1s is allowed");
  }
  if (snapshots_kept < 1 || snapshots_kept > 1000) {
    return Bad("snapshots-kept", snapshots_kept, "1 to 1000 are allowed");
  }
  if (snapshot_deadline < absl::Seconds(1) || snapshot_deadline > absl::Hours(24)) {
    return Bad("snapshot-deadline", absl::FormatDuration(snapshot_deadline),
               "1s to 24h are allowed");
  }
  if (feedback_flush_steps > 1'000'000) {
    return Bad("feedback-flush-steps", feedback_flush_steps, "0 (never) to 1000000 are allowed");
  }
  if (port > 65535) return Bad("port", port, "0 (any) to 65535 are allowed");
  return absl::OkStatus();
}

}  // namespace covey::scheduler
