// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/restored_job.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/cluster/view.h"
#include "common/contract/contract.h"
#include "common/snapshot/manifest.h"
#include "scheduler/snapshots/newest_snapshot.h"

namespace covey::scheduler {
namespace {

// The earlier run went on after the cut, and may have taken further numbers: far fewer than this
// many; and ids of groups and tables, which have 32 bits.
constexpr uint64_t kNumbersPerRun = uint64_t{1} << 32;
constexpr uint32_t kIdsPerRun = uint32_t{1} << 18;

// The first number of the next run.
template <typename Number>
Number Above(Number number, Number per_run) {
  return (number / per_run + 1) * per_run;
}

// The highest step of any group so far: of those in the cut, and of those that had ended.
uint64_t HighestStep(const proto::SnapshotManifest& manifest) {
  uint64_t highest = manifest.state().steps_before();
  for (const proto::CutStep& cut : manifest.groups()) highest = std::max(highest, cut.step());
  std::map<uint32_t, uint64_t> steps_per_clock;  // by table; a round has several
  for (const proto::Table& table : manifest.state().view().tables()) {
    const absl::StatusOr<Contract> contract = ContractInForce(table);
    const bool has_rounds = contract.ok() && contract->kind == Contract::Kind::kLocal;
    steps_per_clock[table.id()] = has_rounds ? contract->local_steps : 1;
  }
  for (const proto::SnapshotShard& shard : manifest.shards()) {
    highest = std::max(highest, shard.last_step() * steps_per_clock[shard.table()]);
  }
  return highest;
}

}  // namespace

absl::StatusOr<proto::LogRecord> RestoredJob(const JobSpec& job,
                                             const proto::SnapshotManifest& manifest) {
  if (IsImported(manifest)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "resume: ", manifest.folder(), " holds imported values, and no job that could continue; ",
        "start a new job with --initial-values ", manifest.folder()));
  }
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
  // At other steps the run would have other bits.
  view.set_feedback_flush_steps(before.view().feedback_flush_steps());
  view.set_run(job.run);
  view.set_epoch(Above<uint64_t>(before.view().epoch(), kNumbersPerRun));
  const auto& groups = before.view().groups();
  const uint32_t last_group =
      groups.empty() ? before.first_group() : groups[groups.size() - 1].id();
  record.set_first_group(Above<uint32_t>(last_group, kIdsPerRun));
  record.set_steps_before(HighestStep(manifest));
  record.set_next_node(Above<uint64_t>(before.next_node(), kNumbersPerRun));
  record.set_next_table(Above<uint32_t>(before.next_table(), kIdsPerRun));
  record.set_next_snapshot(manifest.id() + 1);
  *record.mutable_work() = before.work();
  proto::Restore& restore = *record.mutable_restore();
  restore.set_folder(manifest.folder());
  *record.mutable_newest_snapshot() = NewestSnapshotOf(manifest);
  for (const proto::Table& table : before.view().tables()) {
    proto::Table& restored = *restore.add_tables();
    restored = table;
    for (proto::Shard& shard : *restored.mutable_shards()) shard.clear_chain();
  }
  return record;
}

}  // namespace covey::scheduler
