// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/snapshots.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/cluster/snapshot_tables.h"
#include "common/snapshot/manifest.h"
#include "common/snapshot/needed_files.h"
#include "scheduler/snapshots/cut_plan.h"
#include "scheduler/snapshots/newest_snapshot.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

// How far ahead the first order lies; each further attempt lies twice as far. Views reach servers
// in a fraction of a second, and workers report their steps twice per second.
constexpr absl::Duration kFirstLead = absl::Milliseconds(1500);
// Between two attempts.
constexpr absl::Duration kRetryAfter = absl::Milliseconds(500);
constexpr absl::Duration kTick = absl::Milliseconds(100);

}  // namespace

void Snapshots::Start(absl::Time now) {
  budget_.Start(now);
  last_begun_ = now;
  if (state_.view().has_snapshot()) {
    // What servers have reported is lost.
    Transaction change(state_);
    change.Add(SnapshotFailed{.id = order().id(), .reason = "the scheduler has restarted"});
    Withdraw(change);
    change.Commit();
  }
  if (!options_.has_store) {
    phase_ = Phase::kIdle;
    return;
  }
  stored_.List();
}

void Snapshots::SetSchedule(const Options& options) {
  options_.every = options.every;
  options_.every_samples = options.every_samples;
  options_.kept = options.kept;
  options_.deadline = options.deadline;
  stored_.SetKept(options.kept);
}

void Snapshots::OnListed(absl::Time now) {
  const uint64_t promised = next_id();
  if (state_.record().next_snapshot() <= stored_.highest_id()) {
    Transaction change(state_);
    change.EditUnpublished().set_next_snapshot(stored_.highest_id() + 1);
    change.Commit();
  }
  phase_ = Phase::kIdle;
  if (!asked_) return;
  if (promised != next_id()) {
    proto::SnapshotStatus& status = statuses_.Of(promised);
    status.set_state(proto::SnapshotStatus::FAILED);
    status.set_reason("the store holds a snapshot with a higher id already");
    status.set_tried_again_as(next_id());
  }
  Begin(now, *std::exchange(asked_, std::nullopt));
}

absl::StatusOr<uint64_t> Snapshots::Create(absl::Time now, const std::string& why) {
  if (!options_.has_store) {
    return absl::FailedPreconditionError(
        "snapshot: this job has no store; start its scheduler and servers with --store DIR");
  }
  if (phase_ == Phase::kOrdered || phase_ == Phase::kPublishing) return order().id();
  if (phase_ == Phase::kListing && !asked_) asked_ = why;
  if (phase_ == Phase::kIdle) Begin(now, why);
  return next_id();
}

void Snapshots::OnProgress(absl::Time now, NodeId worker, const proto::Progress& progress) {
  forecast_.OnProgress(now, worker,
                       {.group = GroupId(progress.group()),
                        .step = progress.group_step(),
                        .samples = progress.samples(),
                        .unconfirmed_step = progress.unconfirmed_step(),
                        .view_epoch = Epoch(progress.view_epoch())});
}

bool Snapshots::IsDue(absl::Time now) const {
  if (state_.view().tables().empty()) return false;
  if (state_.view().has_closing()) return state_.view().closing().snapshot().empty();
  if (!HasContent()) return false;
  return now - last_begun_ >= options_.every ||
         (options_.every_samples > 0 &&
          forecast_.samples() - samples_at_last_ >= options_.every_samples);
}

bool Snapshots::HasContent() const {
  const auto& tables = state_.view().tables();
  return std::any_of(tables.begin(), tables.end(), IsInSnapshots);
}

void Snapshots::Begin(absl::Time now, const std::string& why) {
  phase_ = Phase::kWanted;
  work_ = {.why = why, .since = now, .until = now + options_.deadline};
  last_begun_ = now;
  samples_at_last_ = forecast_.samples();
}

void Snapshots::Tick(absl::Time now) {
  budget_.Tick(now);
  if (phase_ == Phase::kIdle && options_.has_store && IsDue(now)) {
    Begin(now, state_.view().has_closing() ? "because the job closes" : "as scheduled");
  }
  const bool may_flush = options_.has_store && HasContent();
  if (phase_ == Phase::kIdle && may_flush && now >= budget_.NextFlush(last_begun_)) {
    Begin(now, "as a flush");
    work_.is_flush = true;
  }
  if (phase_ == Phase::kWanted && now >= work_.not_before) Order(now);
  if (phase_ == Phase::kOrdered) FollowOrder(now);
  if (phase_ != Phase::kListing && phase_ != Phase::kIdle) WatchBudget(now);
}

void Snapshots::WatchBudget(absl::Time now) {
  budget_.Watch(now, {.first_cut = work_.since + kFirstLead,
                      .waits_for = absl::StrCat(work_.parts.shards(), " of ",
                                                work_.conditions.shards(), " shards are stored")});
}

absl::Time Snapshots::NextTick() const {
  switch (phase_) {
    case Phase::kListing:
    case Phase::kPublishing:
      return absl::InfiniteFuture();
    case Phase::kIdle:
      // Without a table there is nothing to do at that time.
      if (!options_.has_store || !HasContent()) return absl::InfiniteFuture();
      return std::min(last_begun_ + options_.every, budget_.NextFlush(last_begun_));
    case Phase::kWanted:
      return std::max(work_.not_before, last_begun_ + kTick);
    case Phase::kOrdered:
      return work_.until;
  }
  return absl::InfiniteFuture();
}

void Snapshots::Order(absl::Time now) {
  work_.not_before = now + kTick;
  const bool waits_too_long = now > work_.until;
  if (state_.record().has_restore()) {
    // The snapshot would lack them, and be the newest one.
    if (!waits_too_long) return;
    return Fail(now, absl::StrCat("the tables of ", state_.record().restore().folder(),
                                  ", which the job continues, still wait for servers; start them"));
  }
  if (!state_.view().tables().empty() && !HasContent() && !state_.view().has_closing()) {
    if (!waits_too_long) return;
    return Fail(now, "no table has its initial values yet; initialize them");
  }
  // A chain that changes would break the order.
  if (HasJoiningReplica(state_.view()) && !waits_too_long) return;
  const auto cut =
      PlanCut(state_.view(), forecast_, now + kFirstLead * (1 << work_.attempt), work_.flush);
  if (!cut.ok() && waits_too_long) return Fail(now, std::string(cut.status().message()));
  if (!cut.ok()) return;
  std::map<GroupId, uint64_t> steps;
  for (const proto::CutStep& last : cut->steps) steps.emplace(GroupId(last.group()), last.step());
  if (const absl::Status data = dispatcher_.BeginCut(steps); !data.ok()) {
    return Fail(now, std::string(data.message()));
  }

  Transaction change(state_);
  const uint64_t id = next_id();
  change.EditUnpublished().set_next_snapshot(id + 1);
  proto::SnapshotOrder& order = *change.EditView().mutable_snapshot();
  order.set_id(id);
  order.set_epoch(change.epoch().value());
  order.set_folder(SnapshotFolderName(id, change.epoch().value()));
  order.set_base(stored_.base());
  order.set_is_flush(work_.is_flush);
  for (const proto::CutStep& last : cut->steps) *order.add_groups() = last;
  change.Add(
      SnapshotOrdered{.id = id, .steps = steps, .why = work_.why, .is_flush = work_.is_flush});
  change.Commit();
  work_.ordered_at = now;
  work_.awaits_flush = cut->awaits_flush;
  work_.planned_cut = now + kFirstLead * (1 << work_.attempt);
  work_.cut_at = work_.awaits_flush ? absl::InfiniteFuture() : work_.planned_cut;
  work_.is_last = state_.view().has_closing();
  work_.conditions = OrderConditions(state_.view());
  work_.parts = {};
  phase_ = Phase::kOrdered;
  proto::SnapshotStatus& status = statuses_.Of(id);
  // An attempt that failed before its order had the same id.
  status.Clear();
  status.set_id(id);
  status.set_folder(order.folder());
  status.set_state(proto::SnapshotStatus::UNDER_WAY);
  status.set_shards(static_cast<uint32_t>(work_.conditions.shards()));
}

void Snapshots::FollowOrder(absl::Time now) {
  const std::string broken = work_.conditions.WhyBroken(state_.view());
  if (!broken.empty()) return Fail(now, broken);
  const std::string impossible = dispatcher_.WhyCutIsImpossible();
  if (!impossible.empty()) return Fail(now, impossible);
  if (now > work_.until && work_.awaits_flush && !order().passed()) {
    work_.flush = Flush::kIgnored;
    work_.until = now + options_.deadline;
    return Fail(now, absl::StrCat("no step at which error feedback is flushed came within ",
                                  absl::FormatDuration(options_.deadline),
                                  "; what it keeps will not be part of the snapshot. Lower the "
                                  "scheduler's --feedback-flush-steps"));
  }
  if (now > work_.until) {
    return Fail(now,
                absl::StrCat("it was not complete after ", absl::FormatDuration(options_.deadline),
                             "; ", work_.parts.shards(), " of ", work_.conditions.shards(),
                             " shards were stored. ", dispatcher_.CutWaitsFor()));
  }
  if (!order().passed()) {
    const bool passed =
        std::all_of(order().groups().begin(), order().groups().end(), [&](const auto& last) {
          return forecast_.HasPassed(*FindGroup(state_.view(), GroupId(last.group())), last.step(),
                                     Epoch(order().epoch()));
        });
    if (passed) {
      work_.cut_at = std::min(work_.cut_at, now);
      Transaction change(state_);
      change.EditView().mutable_snapshot()->set_passed(true);
      change.Add(SnapshotPassed{.id = order().id()});
      change.Commit();
    }
  }
  const bool all_stored = work_.parts.shards() == work_.conditions.shards();
  if (all_stored && dispatcher_.CutIsComplete()) Publish(now);
}

void Snapshots::OnReport(absl::Time now, const proto::SnapshotReportRequest& report) {
  if (phase_ != Phase::kOrdered || report.snapshot() != order().id()) return;
  if (!report.failure().empty()) return Fail(now, report.failure());
  work_.cut_at = std::min(work_.cut_at, now);
  const size_t stored_before = work_.parts.shards();
  work_.parts.Add(report);
  for (size_t i = stored_before; i < work_.parts.shards(); ++i) {
    part_times_.Record(now - work_.ordered_at);
  }
  statuses_.Of(order().id()).set_shards_written(static_cast<uint32_t>(work_.parts.shards()));
  FollowOrder(now);
}

void Snapshots::Publish(absl::Time now) {
  proto::SnapshotManifest manifest;
  manifest.set_id(order().id());
  manifest.set_epoch(order().epoch());
  manifest.set_folder(order().folder());
  *manifest.mutable_groups() = order().groups();
  manifest.set_ordered_unix_ms(
      static_cast<uint64_t>(absl::ToUnixMillis(work_.ordered_at + options_.wall_clock_ahead)));
  proto::LogRecord& state = *manifest.mutable_state();
  state = state_.record();
  state.clear_work();
  for (const proto::WorkLedger& ledger : dispatcher_.LedgersAtCut()) *state.add_work() = ledger;
  state.clear_barriers();
  state.mutable_view()->clear_snapshot();
  auto& tables = *state.mutable_view()->mutable_tables();
  tables.erase(std::remove_if(tables.begin(), tables.end(), std::not_fn(IsInSnapshots)),
               tables.end());
  work_.parts.Fill(manifest);
  absl::StatusOr<Buffer> bytes = EncodeManifest(manifest);
  if (!bytes.ok()) return Fail(now, std::string(bytes.status().message()));
  work_.cut_at = std::min(work_.cut_at, now);
  work_.reused_bytes = ReusedBytes(manifest);
  work_.newest = NewestSnapshotOf(manifest);
  work_.newest.set_cut_unix_ms(
      static_cast<uint64_t>(absl::ToUnixMillis(work_.cut_at + options_.wall_clock_ahead)));
  stored_.Publish(manifest, *std::move(bytes));
  phase_ = Phase::kPublishing;
}

void Snapshots::OnStoreReply(absl::Time now, const Message& reply) {
  const std::optional<absl::Status> published = stored_.OnStoreReply(reply);
  if (phase_ == Phase::kListing && stored_.is_listed()) return OnListed(now);
  if (!published) return;
  if (!published->ok()) return Fail(now, std::string(published->message()));
  Complete(now);
}

void Snapshots::Withdraw(Transaction& change) {
  change.EditView().clear_snapshot();
  dispatcher_.EndCut();
}

void Snapshots::Complete(absl::Time now) {
  WatchBudget(now);
  Transaction change(state_);
  const std::string folder = order().folder();
  proto::SnapshotStatus& status = statuses_.Of(order().id());
  status.set_state(proto::SnapshotStatus::COMPLETE);
  status.set_bytes(work_.parts.bytes());
  status.set_reused_bytes(work_.reused_bytes);
  status.set_took_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(now - work_.since)));
  change.Add(SnapshotCompleted{.id = order().id(),
                               .folder = folder,
                               .bytes = work_.parts.bytes(),
                               .reused_bytes = work_.reused_bytes,
                               .took = now - work_.since,
                               .is_flush = work_.is_flush});
  Withdraw(change);
  *change.EditUnpublished().mutable_newest_snapshot() = work_.newest;
  if (work_.is_last && state_.view().has_closing()) {
    change.EditView().mutable_closing()->set_snapshot(folder);
  }
  change.Commit();
  phase_ = Phase::kIdle;
  budget_.OnComplete(now, {.first_cut = work_.since + kFirstLead,
                           .planned_cut = work_.planned_cut,
                           .cut = work_.cut_at,
                           .is_flush = work_.is_flush});
}

void Snapshots::Fail(absl::Time now, const std::string& reason) {
  const bool again = ++work_.attempt < kAttemptsMax && now < work_.until;
  Transaction change(state_);
  const bool was_ordered = state_.view().has_snapshot();
  const uint64_t id = was_ordered ? order().id() : next_id();
  change.Add(SnapshotFailed{.id = id, .reason = reason, .again = again});
  proto::SnapshotStatus& status = statuses_.Of(id);
  status.set_state(proto::SnapshotStatus::FAILED);
  status.set_reason(reason);
  if (again) status.set_tried_again_as(next_id());
  if (was_ordered) {
    // What servers have stored of it means nothing.
    stored_.Remove(order().folder());
    Withdraw(change);
  }
  change.Commit();
  phase_ = again ? Phase::kWanted : Phase::kIdle;
  work_.not_before = now + kRetryAfter;
}

void Snapshots::FillStatus(absl::Time now, proto::StatusReply& reply) const {
  statuses_.FillStatus(now - work_.since, reply);
  budget_.FillStatus(now, reply);
}

}  // namespace covey::scheduler
