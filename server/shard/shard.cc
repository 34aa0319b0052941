// SPDX-License-Identifier: Apache-2.0
#include "server/shard/shard.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "common/base/check.h"
#include "common/base/planted_bug.h"
#include "common/base/status_macros.h"
#include "common/cluster/snapshot_tables.h"
#include "common/vectors/vector_proto.h"
#include "server/shard/push_checks.h"

namespace covey::server {
namespace {

// The live groups as the contract counts them, and what the shard has lost of them. Under bsp and
// local, updates wait for all groups in any case. A push that is held counts as received.
std::vector<LiveGroup> WaitedFor(const Contract& contract, const ServedShard& shard,
                                 const UpdateGate& gate) {
  std::vector<LiveGroup> groups = contract.WaitedFor(shard.view->live_groups());
  if (contract.kind == Contract::Kind::kBsp || contract.kind == Contract::Kind::kLocal) {
    return groups;
  }
  for (const proto::CutStep& last : shard.view->FindShard(shard.id)->groups_at_loss()) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const LiveGroup& live) {
      return live.id == GroupId(last.group());
    });
    if (group == groups.end() || gate.last_received(group->id) > Step(last.step())) continue;
    group->lost_after = Step(last.step());
  }
  return groups;
}

absl::Time NextFlush(const AckLedger& ledger) {
  return Planted(PlantedBug::kSleepThroughFlush) ? absl::InfiniteFuture() : ledger.flush_at();
}

// The group pushes again: it is waited for as ever.
void NotePush(GroupId group, std::vector<LiveGroup>& waited_for) {
  for (LiveGroup& live : waited_for) {
    if (live.id == group) live.lost_after.reset();
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Shard>> Shard::Open(ShardId id,
                                                   std::shared_ptr<const ClusterView> view,
                                                   Replica& replica,
                                                   const Environment& environment) {
  const proto::Table* table = view->FindTable(id.table);
  const proto::Shard* shard = view->FindShard(id);
  COVEY_CHECK(table != nullptr && shard != nullptr && replica.content() != nullptr);
  COVEY_ASSIGN_OR_RETURN(const TableRules rules, RulesOf(*table, *shard));
  return absl::WrapUnique(new Shard(id, std::move(view), replica, environment, rules));
}

Shard::Shard(ShardId id, std::shared_ptr<const ClusterView> view, Replica& replica,
             const Environment& environment, const TableRules& rules)
    : shard_{.id = id,
             .table_name = view->FindTable(id.table)->spec().name(),
             .counters = environment.counters,
             .spares = environment.spares,
             .budget = environment.budget,
             .key_lists = environment.key_lists,
             .replica = replica,
             .view = view,
             .waited_for = {},
             .ledger = {},
             .correction = StalenessCorrection(rules.asynchrony, replica.content()->asynchrony(),
                                               environment.spares)},
      pipeline_(shard_, rules),
      replies_(shard_) {
  proto::ShardState state;
  content().clocks().Describe(version(), state);
  for (const proto::GroupClock& clock : state.clocks()) {
    pipeline_.Resume(GroupId(clock.group()), Step(clock.step()));
  }
  shard_.waited_for = WaitedFor(contract(), shard_, pipeline_.gate());
  if (content().index() > 0 && Planted(PlantedBug::kForgetDedupOnTakeover)) {
    replica.content()->ForgetPushes();
  }
  if (Planted(PlantedBug::kForgetNormsOnTakeover)) replica.content()->ForgetNorms();
  FollowOrder();
}

void Shard::Push(absl::Time now, const Message& request, Outbox& outbox) {
  const proto::PushRequest& push = request.envelope.push_request();
  PendingReply pending = BeginPendingReply(now, request, push.read(), push.deadline_ms());
  if (GivesInitialValues(request)) {
    return TakeInitialValues(now, request, std::move(pending), outbox);
  }
  const PushKey key = KeyOf(push.id());
  const uint64_t before = content().index();
  RequestKeys keys(request, shard_.id, shard_.key_lists);
  const absl::StatusOr<bool> duplicate = pipeline_.Accept(now, request, key, keys, outbox);
  if (!duplicate.ok()) {
    keys.DescribeTo(pending.reply);
    replies_.Refuse(pending.reply, duplicate.status(), outbox);
    return;
  }
  if (!*duplicate) NotePush(GroupId(push.group()), shard_.waited_for);
  ++(*duplicate ? shard_.counters.duplicates : shard_.counters.pushes);
  if (pipeline_.gate().IsBeyond(GroupId(push.group()), Step(push.step()))) alignment_.NoteHeld(now);
  const bool is_held = shard_.ledger.AckOf(key).has_value();
  if (push.flush() && is_held && !Planted(PlantedBug::kIgnoreFlush)) {
    pipeline_.FlushPartialBuffer();
  }
  ApplyDue(now, outbox);
  pipeline_.KeepHeld();
  pending.push = {
      .key = key, .base_version = Version(push.base_version()), .duplicate = *duplicate};
  pending.wants_values = push.read().wanted();
  const absl::Status known = pending.wants_values ? FindWanted(keys, pending) : absl::OkStatus();
  keys.DescribeTo(pending.reply);
  if (!known.ok()) {
    replies_.Refuse(pending.reply, known, outbox);
  } else if (pending.wants_values) {
    pending.requirement = ReadRequirement::Of(pending.bound, contract());
    replies_.SendWhenFresh(now, std::move(pending), outbox);
  } else {
    replies_.SendWhenDurable(now, pending, outbox);
  }
  if (content().index() != before) replies_.ReleaseParked(now, outbox);
}

void Shard::TakeInitialValues(absl::Time now, const Message& request, PendingReply pending,
                              Outbox& outbox) {
  const Epoch before = initial_values_.taken();
  const absl::Status taken = initial_values_.Take(now, request, shard_, outbox);
  if (!taken.ok()) return replies_.Refuse(pending.reply, taken, outbox);
  pending.push = {.key = KeyOf(request.envelope.push_request().id()),
                  .duplicate = initial_values_.taken() == before,
                  .initial_values = true};
  pending.wants_values = false;
  replies_.SendWhenDurable(now, pending, outbox);
}

void Shard::Pull(absl::Time now, const Message& request, Outbox& outbox) {
  const proto::PullRequest& pull = request.envelope.pull_request();
  ++shard_.counters.pulls;
  PendingReply pending = BeginPendingReply(now, request, pull.read(), pull.deadline_ms());
  pending.wants_slots = pull.with_slots();
  if (pull.has_scan()) {
    pending.scan = pull.scan();
    pending.wants_values = false;
  }
  RequestKeys keys(request, shard_.id, shard_.key_lists);
  const absl::Status known = FindWanted(keys, pending);
  keys.DescribeTo(pending.reply);
  if (!known.ok()) {
    return replies_.Refuse(pending.reply, known, outbox);
  }
  if (!pull.queries().empty()) {
    if (const absl::Status fits = TakeQueries(pull, pending); !fits.ok()) {
      return replies_.Refuse(pending.reply, fits, outbox);
    }
  }
  pending.requirement = ReadRequirement::Of(pending.bound, contract());
  replies_.SendWhenFresh(now, std::move(pending), outbox);
}

absl::Status Shard::FindWanted(RequestKeys& keys, PendingReply& pending) {
  const SparseShard* const rows = content().sparse();
  if (pending.scan) {
    if (rows != nullptr && keys.list() == nullptr && !pending.wants_slots) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "all rows are asked for; they are those of a sparse table, without keys and without the "
        "optimizer's state");
  }
  if ((keys.list() == nullptr) != (rows == nullptr)) {
    return absl::InvalidArgumentError(rows == nullptr
                                          ? "the table is dense; ask for all its elements"
                                          : "the table is sparse; ask for the rows of some keys");
  }
  if (pending.wants_slots && content().vectors() > 0) {
    return absl::InvalidArgumentError(
        "the vectors of a table can not be pulled with its values; copy one to vector 0, the "
        "values, and pull these");
  }
  if (rows == nullptr) return absl::OkStatus();
  if (pending.wants_slots) {
    return absl::InvalidArgumentError(
        "the optimizer's state of a sparse table can not be pulled; it is in snapshots");
  }
  COVEY_ASSIGN_OR_RETURN(pending.keys, keys.Take(*rows));
  return absl::OkStatus();
}

absl::Status Shard::TakeQueries(const proto::PullRequest& pull, PendingReply& pending) const {
  COVEY_ASSIGN_OR_RETURN(pending.queries, QueriesFromProto(pull.queries()));
  pending.wants_values = false;
  if (!pending.wants_slots) return CheckQueries(pending.queries, content().vectors());
  return absl::InvalidArgumentError(
      "the request asks for the optimizer's state and has queries; send two requests");
}

bool Shard::ApplyDue(absl::Time now, Outbox& outbox) {
  const uint64_t before = content().index();
  const auto apply_all = [&] {
    while (const auto update = pipeline_.ApplyNext(now, outbox)) {
      replies_.QueueDurableAcks(now, *update);
    }
  };
  apply_all();
  if (alignment_.is_aligning() &&
      alignment_.IsReached([this](GroupId group, Step step) { return IsReceived(group, step); })) {
    pipeline_.HurryHeld();
    apply_all();
    if (!pipeline_.gate().HoldsUpTo()) {
      Cut(now, outbox);
      apply_all();
    }
  }
  return content().index() != before;
}

bool Shard::IsReceived(GroupId group, Step step) const {
  const Producer producer{.kind = Producer::Kind::kGroup, .id = group.value()};
  return content().push_history().Contains(producer, step.value()) ||
         shard_.ledger.AckOf({.producer = producer, .sequence = step.value()}).has_value();
}

void Shard::Cut(absl::Time now, Outbox& outbox) {
  shard_.replica.Append(now, CutRecord(alignment_.order(), alignment_.epoch()), {}, outbox);
  alignment_.End();
  pipeline_.Release();
}

void Shard::Settle(absl::Time now, Outbox& outbox) {
  if (!suspended_) {
    AckLedger& ledger = shard_.ledger;
    shard_.replica.SetEarlyAcksPending(now, ledger.early_acks_pending(), outbox);
    // Pushes beyond a cut become due only after it.
    ledger.UpdateFlush(now, shard_.replica.has_required_successor() &&
                                pipeline_.gate().sums_on_arrival() && !alignment_.is_aligning());
    replies_.SendDurable(now, outbox);
  }
  replies_.RefuseLateUndurable(now, outbox);
  replies_.ForgetEncoded();
}

void Shard::Close(absl::Time now, const absl::Status& why, Outbox& outbox) {
  shard_.replica.SetEarlyAcksPending(now, false, outbox);
  replies_.RefuseParked(why, outbox);
  replies_.RefuseUndurable(why, outbox);
  shard_.key_lists.Forget(shard_.id);
}

void Shard::SetView(absl::Time now, std::shared_ptr<const ClusterView> view, Outbox& outbox) {
  shard_.view = std::move(view);
  FollowContract();
  FollowOrder();
  shard_.waited_for = WaitedFor(contract(), shard_, pipeline_.gate());
  shard_.correction.Forget(
      [this](const Producer& producer) { return IsGone(producer, *shard_.view); });
  Proceed(now, outbox);
  if (!suspended_) pipeline_.ForgetGone(now, outbox);
}

void Shard::Proceed(absl::Time now, Outbox& outbox) {
  if (suspended_) return;
  ApplyDue(now, outbox);
  replies_.ReleaseParked(now, outbox);
}

void Shard::Suspend(const absl::Status& why, Outbox& outbox) {
  if (Planted(PlantedBug::kAnswerAfterLease)) return;
  suspended_ = true;
  replies_.RefuseParked(why, outbox);
}

void Shard::Resume(absl::Time now, Outbox& outbox) {
  if (!std::exchange(suspended_, false)) return;
  Proceed(now, outbox);
}

void Shard::FollowOrder() {
  const proto::ClusterView& view = shard_.view->proto();
  const bool is_cut =
      view.has_snapshot() && IsInSnapshots(*shard_.view->FindTable(shard_.id.table));
  const uint64_t ordered = is_cut ? view.snapshot().id() : 0;
  if (alignment_.order() != 0 && alignment_.order() != ordered) {
    alignment_.End();
    pipeline_.Release();
  }
  // A cut stays in the content, whichever server is the head.
  if (ordered <= content().last_cut()) return;
  if (alignment_.order() == ordered) {
    alignment_.Update(view.snapshot());
    return;
  }
  proto::SnapshotOrder order = view.snapshot();
  if (Planted(PlantedBug::kCutOneStepLate) && shard_.id.index == ShardIndex(0)) {
    for (proto::CutStep& last : *order.mutable_groups()) last.set_step(last.step() + 1);
  }
  alignment_.Begin(order, contract(), pipeline_.gate());
  if (alignment_.is_aligning()) pipeline_.HoldBeyond(alignment_.last());
}

void Shard::FollowContract() {
  const absl::StatusOr<Contract> newest = ContractInForce(*shard_.view->FindTable(shard_.id.table));
  // What this server does not know, or a scheduler would never ask for, changes nothing.
  if (!newest.ok() || *newest == contract() || !contract().CheckSwitchTo(*newest).ok()) return;
  pipeline_.SwitchTo(*newest);
  replies_.FollowContract(*newest);
}

absl::Time Shard::NextWake() const {
  if (suspended_) return replies_.next_undurable_deadline();
  return std::min({replies_.next_parked_deadline(), replies_.next_undurable_deadline(),
                   pipeline_.gate().NextDue(), NextFlush(shard_.ledger), alignment_.deadline()});
}

void Shard::Wake(absl::Time now, Outbox& outbox) {
  if (!suspended_) {
    const absl::Time flush_at = shard_.ledger.flush_at();
    if (flush_at <= now) pipeline_.FlushPartialBuffer();
    const bool gives_up = alignment_.deadline() <= now;
    if (gives_up) {
      alignment_.Wake(now, pipeline_.gate());
      pipeline_.Release();
    }
    const bool may_be_due = gives_up || std::min(pipeline_.gate().NextDue(), flush_at) <= now;
    if (may_be_due && ApplyDue(now, outbox)) replies_.ReleaseParked(now, outbox);
  }
  // Readers for which the shard is fresh enough by now have their reply; the others are late.
  replies_.RefuseLateParked(now, outbox);
}

bool Shard::IsAwaited(const Message& request) const {
  if (!request.envelope.has_push_request()) return true;
  const proto::PushRequest& push = request.envelope.push_request();
  const UpdateGate& gate = pipeline_.gate();
  const GroupId group(push.group());
  const Step step(push.step());
  if (gate.sums_on_arrival()) {
    return !gate.IsBeyond(group, step) &&
           (gate.HoldsUpTo() || !Planted(PlantedBug::kCountWhatOthersHold));
  }
  // A group of which a push is held already is ahead, unless this is the next step of all.
  return !gate.Holds(group) || step <= gate.last_step().Next();
}

QueueBudget::Waiting Shard::waiting() const {
  return {.gradients = pipeline_.held_bytes(),
          .readers = replies_.parked_bytes(),
          .others = shard_.replica.kept_bytes() + replies_.undurable_bytes()};
}

proto::TableAsynchrony Shard::ReportAsynchrony() const {
  proto::TableAsynchrony report = shard_.correction.Report();
  report.set_table(shard_.id.table.value());
  report.set_updates(version().value());
  report.set_discarded(content().discarded());
  return report;
}

std::optional<proto::TableRows> Shard::ReportRows() const {
  const SparseShard* const rows = content().sparse();
  if (rows == nullptr) return std::nullopt;
  proto::TableRows report;
  report.set_table(shard_.id.table.value());
  report.set_rows(rows->rows());
  report.set_pending(rows->pending());
  report.set_evicted(rows->totals().evicted);
  report.set_refused(rows->totals().refused);
  report.set_bytes(rows->bytes());
  return report;
}

std::vector<proto::GatedProducer> Shard::ReportGated() const {
  std::vector<proto::GatedProducer> report =
      pipeline_.norm_gate().Report(content().push_history(), *shard_.view);
  for (proto::GatedProducer& gated : report) {
    gated.set_table(shard_.id.table.value());
    gated.set_shard(shard_.id.index.value());
  }
  return report;
}

}  // namespace covey::server
