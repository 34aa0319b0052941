// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/restored_job.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/cluster/view.h"

namespace covey::scheduler {
namespace {

// The earlier run went on after the cut, and may have taken further numbers: far fewer than this
// many.
constexpr uint64_t kNumbersPerRun = uint64_t{1} << 32;

// The first number of the next run.
uint64_t Above(uint64_t number) { return (number / kNumbersPerRun + 1) * kNumbersPerRun; }

}  // namespace

absl::StatusOr<proto::LogRecord> RestoredJob(const JobSpec& job,
                                             const proto::SnapshotManifest& manifest) {
  const proto::LogRecord& before = manifest.state();
  if (before.view().job_name() != job.name) {
    return absl::InvalidArgumentError(
        absl::StrCat("snapshot ", manifest.folder(), " is of job '", before.view().job_name(),
                     "', and this job is '", job.name, "'; use --job ", before.view().job_name()));
  }
  proto::LogRecord record;
  proto::ClusterView& view = *record.mutable_view();
  view.set_job_name(job.name);
  view.set_job(JobFingerprint(job.name));
  view.set_epoch(Above(before.view().epoch()));
  const auto& groups = before.view().groups();
  record.set_first_group(groups.empty() ? before.first_group()
                                        : groups[groups.size() - 1].id() + 1);
  uint64_t steps = before.steps_before();
  for (const proto::CutStep& cut : manifest.groups()) steps = std::max(steps, cut.step());
  // Groups that had ended are not in the cut, but their pushes are.
  for (const proto::SnapshotShard& shard : manifest.shards()) {
    steps = std::max(steps, shard.last_step());
  }
  record.set_steps_before(steps);
  record.set_next_node(Above(before.next_node()));
  record.set_next_table(before.next_table());
  record.set_next_snapshot(manifest.id() + 1);
  *record.mutable_work() = before.work();
  proto::Restore& restore = *record.mutable_restore();
  restore.set_folder(manifest.folder());
  record.mutable_newest_snapshot()->set_folder(manifest.folder());
  for (const proto::Table& table : before.view().tables()) {
    record.mutable_newest_snapshot()->add_tables(table.id());
    proto::Table& restored = *restore.add_tables();
    restored = table;
    for (proto::Shard& shard : *restored.mutable_shards()) shard.clear_chain();
  }
  return record;
}

}  // namespace covey::scheduler
