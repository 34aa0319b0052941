// SPDX-License-Identifier: Apache-2.0
#include "server/shard/shard.h"

#include <algorithm>
#include <utility>

#include "absl/container/btree_set.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/planted_bug.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "server/shard/push_checks.h"

namespace covey::server {

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
    : id_(id),
      table_name_(view->FindTable(id.table)->spec().name()),
      refuses_non_finite_(rules.refuses_non_finite),
      environment_(environment),
      view_(std::move(view)),
      replica_(replica),
      aggregator_(rules.contract, environment.spares),
      correction_(rules.asynchrony, environment.spares),
      waited_for_(contract().WaitedFor(view_->live_groups())) {
  proto::ShardState state;
  content().clocks().Describe(version(), state);
  for (const proto::GroupClock& clock : state.clocks()) {
    aggregator_.Resume(GroupId(clock.group()), Step(clock.step()));
  }
  if (content().index() > 0 && Planted(PlantedBug::kForgetDedupOnTakeover)) {
    replica_.content()->ForgetPushes();
  }
}

void Shard::Push(absl::Time now, const Message& request, Outbox& outbox) {
  const proto::PushRequest& push = request.envelope.push_request();
  PendingReply pending = BeginPendingReply(now, request, push.read(), push.deadline_ms());
  const PushKey key = KeyOf(push.id());
  const absl::StatusOr<bool> duplicate = Accept(now, request, key, outbox);
  if (!duplicate.ok()) {
    Refuse(pending.reply, duplicate.status(), outbox);
    return;
  }
  ++(*duplicate ? environment_.counters.duplicates : environment_.counters.pushes);
  const bool new_version = ApplyDue(now, outbox);
  pending.push = {
      .key = key, .base_version = Version(push.base_version()), .duplicate = *duplicate};
  pending.wants_values = push.read().wanted();
  if (pending.wants_values) {
    pending.requirement = ReadRequirement::Of(pending.bound, contract());
    ReplyWhenFresh(now, std::move(pending), outbox);
  } else {
    ReplyWhenDurable(now, pending, outbox);
  }
  if (new_version) ReleaseParked(now, outbox);
}

bool Shard::ApplyDue(absl::Time now, Outbox& outbox) {
  const Version before = version();
  const GroupCensus groups{.live = waited_for_,
                           .known = static_cast<size_t>(view_->proto().groups_size())};
  while (auto update = aggregator_.TakeDue(now, groups)) Apply(now, *update, outbox);
  return version() != before;
}

void Shard::Apply(absl::Time now, AggregatedUpdate& update, Outbox& outbox) {
  ShardRecord record{
      .version = version().Next(),
      .pushes = {},
      .samples = update.samples,
      .adjustment = correction_.BeginUpdate(update, version(), waited_for_.size(), contract()),
      .gradient = std::move(update.encoded),
      .digest = {}};
  for (const ReceivedPush& push : update.pushes) {
    record.pushes.push_back({.key = push.key, .group = push.group, .step = push.step});
  }
  MakeRoom(record);
  replica_.Append(now, std::move(record), update.gradient_sum.elements(), outbox);
  QueueDurableAcks(now, update);
}

void Shard::MakeRoom(ShardRecord& record) const {
  const PushHistory& history = content().push_history();
  if (history.size() < kProducersPerShardMax) return;
  absl::btree_set<Producer> forgotten;
  for (size_t i = 0; i < record.pushes.size(); ++i) {
    if (history.Knows(record.pushes[i].key.producer)) continue;
    const auto oldest = history.FindOldest([&](const Producer& producer) {
      return !forgotten.contains(producer) && IsGone(producer, *view_);
    });
    if (!oldest) return;
    forgotten.insert(*oldest);
  }
  for (const Producer& producer : forgotten) {
    record.pushes.insert(record.pushes.begin(), {.key = {.producer = producer}});
  }
}

uint64_t Shard::durable() const {
  return Planted(PlantedBug::kAcknowledgeBeforeReplicate) ? content().index() : replica_.durable();
}

void Shard::Settle(absl::Time now, Outbox& outbox) {
  if (!suspended_) {
    replica_.SetEarlyAcksPending(now, ledger_.early_acks_pending(), outbox);
    ledger_.UpdateFlush(now,
                        replica_.has_required_successor() && aggregator_.gate().sums_on_arrival());
    undurable_.TakeDurable(
        durable(), [&](UndurableReply& complete) { SendNow(now, std::move(complete), outbox); });
  }
  undurable_.TakeLate(now, [&](UndurableReply& complete) {
    Refuse(
        complete.reply,
        absl::DeadlineExceededError(absl::StrCat(
            "applied here, but not acknowledged before the deadline by ", replica_.SuccessorName(),
            ", next in the chain; ask again, it is lost or durable then")),
        outbox);
  });
}

void Shard::SetView(absl::Time now, std::shared_ptr<const ClusterView> view, Outbox& outbox) {
  view_ = std::move(view);
  FollowContract();
  waited_for_ = contract().WaitedFor(view_->live_groups());
  correction_.Forget([this](const Producer& producer) { return IsGone(producer, *view_); });
  Proceed(now, outbox);
}

void Shard::Proceed(absl::Time now, Outbox& outbox) {
  if (suspended_) return;
  ApplyDue(now, outbox);
  ReleaseParked(now, outbox);
}

void Shard::Suspend(const absl::Status& why, Outbox& outbox) {
  suspended_ = true;
  parked_.Take([](const PendingReply&) { return true; },
               [&](PendingReply& pending) { Refuse(pending.reply, why, outbox); });
}

void Shard::Resume(absl::Time now, Outbox& outbox) {
  if (!std::exchange(suspended_, false)) return;
  Proceed(now, outbox);
}

void Shard::FollowContract() {
  const absl::StatusOr<Contract> newest = ContractInForce(*view_->FindTable(id_.table));
  // What this server does not know, or a scheduler would never ask for, changes nothing.
  if (!newest.ok() || *newest == contract() || !contract().CheckSwitchTo(*newest).ok()) return;
  aggregator_.SwitchTo(*newest);
  parked_.ForEach([&](PendingReply& pending) {
    pending.requirement = ReadRequirement::Of(pending.bound, *newest);
  });
}

absl::Time Shard::NextWake() const {
  if (suspended_) return undurable_.next_deadline();
  return std::min({parked_.next_deadline(), undurable_.next_deadline(),
                   aggregator_.gate().NextDue(), ledger_.flush_at()});
}

void Shard::Wake(absl::Time now, Outbox& outbox) {
  if (!suspended_) {
    if (ledger_.flush_at() <= now) aggregator_.FlushPartialBuffer();
    if (std::min(aggregator_.gate().NextDue(), ledger_.flush_at()) <= now &&
        ApplyDue(now, outbox)) {
      ReleaseParked(now, outbox);
    }
  }
  // Readers for which the shard is fresh enough by now have their reply; the others are late.
  parked_.Take([now](const PendingReply& pending) { return pending.deadline <= now; },
               [&](PendingReply& pending) {
                 Refuse(pending.reply,
                        absl::DeadlineExceededError(
                            absl::StrCat("not as fresh as asked before the deadline: ",
                                         Missing(pending.requirement, FreshnessAt(now)),
                                         "; see `covey status` for who is behind, or allow more "
                                         "time")),
                        outbox);
               });
}

size_t Shard::queued_bytes() const {
  return aggregator_.held_bytes() + replica_.kept_bytes() + undurable_.bytes();
}

proto::TableAsynchrony Shard::ReportAsynchrony() const {
  proto::TableAsynchrony report = correction_.Report();
  report.set_table(id_.table.value());
  report.set_updates(version().value());
  report.set_discarded(content().discarded());
  return report;
}

}  // namespace covey::server
