// SPDX-License-Identifier: Apache-2.0
#include "server/shard_host.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/log.h"
#include "common/base/planted_bug.h"
#include "common/base/status_macros.h"
#include "server/shard/initial_values.h"

namespace covey::server {

ShardHost::ShardHost(ShardId id, uint64_t generation, absl::Time lease_until,
                     const Environment& environment)
    : id_(id),
      environment_(environment),
      replica_(id, generation,
               Replica::Environment{.memory = environment.memory,
                                    .spares = environment.spares,
                                    .counters = environment.counters,
                                    .observer = environment.observer,
                                    .held = environment.held,
                                    .tables = environment.tables}),
      lease_until_(lease_until) {}

ShardHost::~ShardHost() { ReportWaiting({}); }

void ShardHost::ReportWaiting(const QueueBudget::Waiting& waiting) {
  environment_.budget.Change(std::exchange(reported_, waiting), waiting);
}

ShardHost::Settled ShardHost::Settle(absl::Time now, Outbox& outbox) {
  if (shard_ != nullptr) shard_->Settle(now, outbox);
  ReportWaiting(waiting());
  replica_.ReportTableBytes();
  return {.next_wake = NextWake(),
          .needs_open = needs_open(),
          .reports = replica_.TakeReports(),
          .cuts = replica_.TakeCuts(),
          .cut_failure = shard_ == nullptr ? std::nullopt : shard_->TakeCutFailure(),
          .load_from = replica_.TakeLoadRequest()};
}

absl::Time ShardHost::NextWake() const {
  const absl::Time replica = replica_.NextWake();
  if (shard_ == nullptr) return replica;
  const absl::Time either = std::min(replica, shard_->NextWake());
  const bool may_suspend =
      needs_lease_ && !shard_->suspended() && !Planted(PlantedBug::kIgnoreLease);
  return may_suspend ? std::min(either, lease_until_) : either;
}

bool ShardHost::needs_open() const {
  return shard_ == nullptr && failure().ok() && (replica_.is_head() || replica_.may_open());
}

void ShardHost::Reconsider(absl::Time now) {
  if (absl::IsResourceExhausted(failure_) && now >= failed_at_ + kReopenAfter) {
    failure_ = absl::OkStatus();
  }
}

absl::Status ShardHost::failure() const {
  if (replica_.state() != ReplicaState::kLoading) return failure_;
  const auto source = LoadSourceOf(*view_->FindTable(id_.table), *view_->FindShard(id_));
  return absl::UnavailableError(
      absl::StrCat("the shard is being read from ", source->folder, "; retry"));
}

ShardHost::Settled ShardHost::Load(absl::Time now, const absl::StatusOr<Message>& piece,
                                   Outbox& outbox) {
  replica_.Load(now, piece, outbox);
  return Settle(now, outbox);
}

ShardHost::Settled ShardHost::SetView(absl::Time now, std::shared_ptr<const ClusterView> view,
                                      const Address& self, Outbox& outbox) {
  view_ = std::move(view);
  self_ = self;
  const auto& chain = view_->FindShard(id_)->chain();
  needs_lease_ = std::count_if(chain.begin(), chain.end(), [](const auto& r) {
                   return !r.joining() || Planted(PlantedBug::kJoiningCountsForLease);
                 }) < 2;
  replica_.SetView(now, view_, self, outbox);
  has_logged_failure_ = false;
  // What may be possible by now is tried again.
  if (absl::IsUnavailable(failure_) || absl::IsResourceExhausted(failure_)) {
    failure_ = absl::OkStatus();
  }
  if (!replica_.is_head()) {
    CloseShard(now, *view_, outbox);
  } else if (shard_ != nullptr) {
    ApplyLease(now, outbox);
    shard_->SetView(now, view_, outbox);
  }
  return Settle(now, outbox);
}

ShardHost::Settled ShardHost::SetLease(absl::Time now, absl::Time until, Outbox& outbox) {
  lease_until_ = until;
  ApplyLease(now, outbox);
  return Settle(now, outbox);
}

ShardHost::Settled ShardHost::Wake(absl::Time now, Outbox& outbox) {
  ApplyLease(now, outbox);
  if (replica_.NextWake() <= now) replica_.Wake(now, outbox);
  if (shard_ != nullptr && shard_->NextWake() <= now) shard_->Wake(now, outbox);
  return Settle(now, outbox);
}

ShardHost::Settled ShardHost::Close(absl::Time now, const ClusterView& view, Outbox& outbox) {
  CloseShard(now, view, outbox);
  return Settle(now, outbox);
}

void ShardHost::CloseShard(absl::Time now, const ClusterView& view, Outbox& outbox) {
  if (shard_ == nullptr) return;
  shard_->Close(
      now,
      absl::FailedPreconditionError(absl::StrCat("the shard was closed by the view of epoch ",
                                                 view.epoch().value(), "; follow that view")),
      outbox);
  shard_.reset();
}

absl::Status ShardHost::CheckRequest(absl::Time now, const Message& request) const {
  absl::Status refusal = CheckSendersView(request);
  if (refusal.ok()) refusal = CheckLease(now);
  const proto::Table& table = *view_->FindTable(id_.table);
  if (refusal.ok()) refusal = CheckInitialization(request, *view_, table);
  if (refusal.ok()) return refusal;
  return Annotate(absl::StrCat("table '", table.spec().name(), "' shard=", id_.index.value()),
                  refusal);
}

// A push that only the former head had received is resent by a sender once it knows this head. It
// must arrive before that sender's newer pushes.
absl::Status ShardHost::CheckSendersView(const Message& request) const {
  const Epoch known(request.envelope.header().epoch());
  if (!request.envelope.has_push_request() || known >= replica_.head_since() ||
      Planted(PlantedBug::kTakePushesOfOldViews)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      view_->NameOf(self_.node), " leads its chain since epoch ", replica_.head_since().value(),
      ", the push was sent by the view of epoch ", known.value(), "; follow the newer view"));
}

absl::Status ShardHost::CheckLease(absl::Time now) const {
  if (!needs_lease_ || now < lease_until_ || Planted(PlantedBug::kIgnoreLease)) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(
      view_->NameOf(self_.node), " alone holds it, and its lease is over since ",
      absl::FormatDuration(absl::Trunc(now - lease_until_, absl::Milliseconds(1))),
      ", so another server may hold it by now. Either the server leaves, or the scheduler is not "
      "heard: start it again, or give the table two replicas"));
}

void ShardHost::ApplyLease(absl::Time now, Outbox& outbox) {
  if (shard_ == nullptr) return;
  const absl::Status lease = CheckLease(now);
  if (lease.ok()) {
    shard_->Resume(now, outbox);
  } else if (!shard_->suspended()) {
    shard_->Suspend(lease, outbox);
  }
}

ShardHost::Settled ShardHost::Open(absl::Time now, Outbox& outbox) {
  if (!needs_open()) return Settle(now, outbox);
  failure_ = replica_.Open(now);
  failed_at_ = now;
  if (!failure_.ok() && !std::exchange(has_logged_failure_, true)) {
    LogWarning("shard_not_opened", {{"table", id_.table.value()},
                                    {"shard", id_.index.value()},
                                    {"reason", failure_.message()}});
  }
  const bool is_loading = replica_.state() == ReplicaState::kLoading;
  if (!failure_.ok() || is_loading || !replica_.is_head()) return Settle(now, outbox);
  if (replica_.content() == nullptr) {
    failure_ = absl::UnavailableError(
        "the content was lost when its digest turned out wrong; another server takes over, retry");
    return Settle(now, outbox);
  }
  auto shard = Shard::Open(id_, view_, replica_,
                           {.spares = environment_.spares,
                            .counters = environment_.counters,
                            .budget = environment_.budget,
                            .key_lists = environment_.key_lists});
  if (shard.ok()) {
    shard_ = *std::move(shard);
    ApplyLease(now, outbox);
    shard_->Proceed(now, outbox);
  } else {
    failure_ = shard.status();
  }
  return Settle(now, outbox);
}

ShardHost::Settled ShardHost::Push(absl::Time now, const Message& request, Outbox& outbox) {
  shard_->Push(now, request, outbox);
  return Settle(now, outbox);
}

ShardHost::Settled ShardHost::Pull(absl::Time now, const Message& request, Outbox& outbox) {
  shard_->Pull(now, request, outbox);
  return Settle(now, outbox);
}

ShardHost::Settled ShardHost::OnChainMessage(absl::Time now, const Message& message,
                                             Outbox& outbox) {
  // Without the lease, no reply of a joining replica makes anything durable; the replica is queried
  // again later.
  if (!message.envelope.has_replicate_reply() || CheckLease(now).ok()) {
    ApplyLease(now, outbox);
    replica_.Receive(now, message, outbox);
  }
  return Settle(now, outbox);
}

QueueBudget::Request ShardHost::RoomFor(const Message& request) const {
  // A shard that is opened by the request has nothing that waits.
  const bool is_awaited = shard_ == nullptr || shard_->IsAwaited(request);
  return is_awaited ? QueueBudget::Request::kAwaited : QueueBudget::Request::kUnawaited;
}

QueueBudget::Waiting ShardHost::waiting() const {
  if (shard_ == nullptr) return {.others = replica_.kept_bytes()};
  return shard_->waiting();
}

proto::ServerLoad ShardHost::Load() const {
  proto::ServerLoad load;
  load.set_queued_bytes(waiting().sum());
  if (replica_.content() != nullptr) load.set_table_bytes(replica_.content()->bytes());
  if (shard_ == nullptr) {
    load.set_replica_bytes(load.table_bytes());
  } else {
    *load.add_tables() = shard_->ReportAsynchrony();
    for (proto::GatedProducer& gated : shard_->ReportGated()) {
      *load.add_gated() = std::move(gated);
    }
    if (std::optional<proto::TableRows> rows = shard_->ReportRows()) {
      *load.add_rows() = *std::move(rows);
    }
  }
  return load;
}

}  // namespace covey::server
