#include "server/shard_actor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/planted_bug.h"
#include "common/base/status_macros.h"
#include "common/contract/momentum_governor.h"
#include "server/refusals.h"
#include "server/shard/push_checks.h"

namespace covey::server {
namespace {

// How often bytes that wait are counted: seldom enough to cost nothing, often enough to notice.
constexpr uint64_t kRequestsPerCount = 16;
// Advice to who is refused because the lease has ended.
constexpr uint32_t kLeaseRetryAfterMs = 1000;

}  // namespace

ShardActor::ShardActor(const Options& options)
    : options_(options), spares_(options.spare_bytes_max) {}

void ShardActor::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  switch (message.envelope.body_case()) {
    case proto::Envelope::kPushRequest:
      Push(now, message, outbox);
      return;
    case proto::Envelope::kPullRequest:
      Pull(now, message, outbox);
      return;
    case proto::Envelope::kWatchViewReply:
      // Only the control loop, in this process, speaks without a connection.
      if (message.connection == 0) {
        AdoptView(now, message, outbox);
        return;
      }
      break;
    case proto::Envelope::kLeaseNotice:
      if (message.connection == 0) {
        AdoptLease(now, message.envelope.lease_notice(), outbox);
        return;
      }
      break;
    case proto::Envelope::kReplicateRequest:
    case proto::Envelope::kReplicateReply:
    case proto::Envelope::kReplicaPiece:
      Replicate(now, message, outbox);
      return;
    default:
      break;
  }
  ++counters_.malformed;
}

void ShardActor::AdoptLease(absl::Time now, const proto::LeaseNotice& lease, Outbox& outbox) {
  const bool had_ended = now >= lease_until_;
  lease_until_ = absl::FromUnixNanos(lease.until_ns());
  if (had_ended) {
    for (auto& [id, place] : places_) FollowLease(now, place, outbox);
    SendReports(outbox);
  }
  next_deadline_ = EarliestDeadline();
}

void ShardActor::AdoptView(absl::Time now, const Message& message, Outbox& outbox) {
  auto view = ClusterView::Make(message.envelope.watch_view_reply().view());
  if (!view.ok() || (*view)->epoch() <= view_->epoch()) return;
  view_ = *std::move(view);
  self_ = message.to();
  if (next_report_ == absl::InfiniteFuture()) next_report_ = now + options_.report_every;

  absl::btree_map<ShardId, Place> before = std::exchange(places_, {});
  unopened_.clear();
  for (const proto::Table& table : view_->proto().tables()) {
    for (const proto::Shard& shard : table.shards()) {
      if (!ClusterView::PositionInChain(shard, self_)) continue;
      const ShardId id{TableId(table.id()), ShardIndex(shard.index())};
      Place& place = places_[id];
      const auto known = before.find(id);
      if (known != before.end() && known->second.replica->generation() == shard.generation()) {
        place = std::move(known->second);
        before.erase(known);
      } else {
        place.replica = std::make_unique<Replica>(
            id, shard.generation(),
            Replica::Environment{.spares = spares_, .counters = counters_, .reports = reports_});
      }
      place.needs_lease = std::count_if(shard.chain().begin(), shard.chain().end(),
                                        [](const auto& r) { return !r.joining(); }) < 2;
      FollowView(now, id, place, outbox);
    }
  }
  for (auto& [id, place] : before) ClosePlace(now, place, outbox);
  std::vector<ShardId> shards;
  for (const auto& [id, place] : places_) shards.push_back(id);
  neighbours_.Follow(*view_, self_, shards, outbox);
  SendReports(outbox);
  next_deadline_ = EarliestDeadline();
}

void ShardActor::FollowView(absl::Time now, ShardId id, Place& place, Outbox& outbox) {
  Replica& replica = *place.replica;
  replica.SetView(now, view_, self_, outbox);
  if (absl::IsUnavailable(place.failure)) place.failure = absl::OkStatus();
  if (place.shard != nullptr && !replica.is_head()) {
    ClosePlace(now, place, outbox);
  } else if (place.shard != nullptr) {
    FollowLease(now, place, outbox);
    place.shard->SetView(now, view_, outbox);
  } else if (place.failure.ok() && (replica.is_head() || replica.may_open())) {
    unopened_.insert(id);
  }
}

void ShardActor::ClosePlace(absl::Time now, Place& place, Outbox& outbox) {
  if (place.shard == nullptr) return;
  place.shard->Close(
      now,
      absl::FailedPreconditionError(absl::StrCat("the shard was closed by the view of epoch ",
                                                 view_->epoch().value(), "; follow that view")),
      outbox);
  place.shard.reset();
}

void ShardActor::SendReports(Outbox& outbox) {
  if (reports_.empty()) return;
  Message message;
  message.set_to({self_.node, 0});
  proto::ReplicaReportRequest& request = *message.envelope.mutable_replica_report_request();
  for (proto::ReplicaReport& report : reports_) *request.add_reports() = std::move(report);
  reports_.clear();
  outbox.Send(std::move(message));
}

void ShardActor::Replicate(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::Envelope& envelope = message.envelope;
  const proto::ChainPosition& chain =
      envelope.has_replicate_request() ? envelope.replicate_request().chain()
      : envelope.has_replicate_reply() ? envelope.replicate_reply().chain()
                                       : envelope.replica_piece().chain();
  const ShardId id{TableId(chain.table()), ShardIndex(chain.shard())};
  const auto found = places_.find(id);
  if (found == places_.end() || found->second.replica->generation() != chain.generation()) {
    if (auto refusal = RefusalToStranger(message, chain, *view_, self_)) {
      outbox.Send(*std::move(refusal));
    }
    return;
  }
  Place& place = found->second;
  // What a joining replica holds makes nothing durable any more; it is asked again.
  if (envelope.has_replicate_reply() && !CheckLease(now, place).ok()) return;
  FollowLease(now, place, outbox);
  place.replica->Receive(now, message, outbox);
  if (place.shard != nullptr) place.shard->FollowChain(now, outbox);
  if (place.replica->content() != nullptr && !place.replica->is_head()) unopened_.erase(id);
  SendReports(outbox);
  next_deadline_ = std::min(next_deadline_, PlaceDeadline(place));
}

absl::Time ShardActor::PlaceDeadline(const Place& place) const {
  absl::Time deadline = place.replica->NextWake();
  if (place.shard == nullptr) return deadline;
  deadline = std::min(deadline, place.shard->NextWake());
  const bool may_suspend =
      place.needs_lease && !place.shard->suspended() && !Planted(PlantedBug::kIgnoreLease);
  return may_suspend ? std::min(deadline, lease_until_) : deadline;
}

absl::Time ShardActor::EarliestDeadline() const {
  absl::Time earliest = absl::InfiniteFuture();
  for (const auto& [id, place] : places_) {
    earliest = std::min(earliest, PlaceDeadline(place));
  }
  return earliest;
}

void ShardActor::Push(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::PushRequest& push = message.envelope.push_request();
  const ShardId id{TableId(push.id().table()), ShardIndex(push.id().shard())};
  const absl::StatusOr<Shard*> shard = Find(now, message, id, push.shard_generation());
  if (!shard.ok()) {
    Refuse(now, message, shard.status(), outbox);
    return;
  }
  (*shard)->Push(now, message, outbox);
  SendReports(outbox);
  next_deadline_ = std::min(next_deadline_, PlaceDeadline(places_.at(id)));
}

void ShardActor::Pull(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::PullRequest& pull = message.envelope.pull_request();
  const ShardId id{TableId(pull.table()), ShardIndex(pull.shard())};
  const absl::StatusOr<Shard*> shard = Find(now, message, id, pull.shard_generation());
  if (!shard.ok()) {
    Refuse(now, message, shard.status(), outbox);
    return;
  }
  (*shard)->Pull(now, message, outbox);
  next_deadline_ = std::min(next_deadline_, PlaceDeadline(places_.at(id)));
}

void ShardActor::Refuse(absl::Time now, const Message& request, const absl::Status& why,
                        Outbox& outbox) {
  Message reply = RefusalOf(request, why);
  if (absl::IsResourceExhausted(why)) ++counters_.refused;
  if (absl::IsUnavailable(why) && now >= lease_until_) {
    reply.envelope.mutable_status()->set_retry_after_ms(kLeaseRetryAfterMs);
  }
  outbox.Send(std::move(reply));
}

absl::Status ShardActor::CheckBudget() {
  if (++requests_since_count_ >= kRequestsPerCount) CountQueued();
  if (queued_bytes_ <= options_.queued_bytes_max) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(queued_bytes_, " bytes wait in this loop, ", options_.queued_bytes_max,
                   " are allowed; retry later, or allow more with --queued-bytes-max"));
}

void ShardActor::CountQueued() {
  requests_since_count_ = 0;
  queued_bytes_ = 0;
  for (const auto& [id, place] : places_) {
    queued_bytes_ +=
        place.shard != nullptr ? place.shard->queued_bytes() : place.replica->kept_bytes();
  }
}

absl::StatusOr<Shard*> ShardActor::Find(absl::Time now, const Message& request, ShardId id,
                                        uint64_t generation) {
  const auto found = places_.find(id);
  if (found == places_.end() || found->second.replica->generation() != generation ||
      !found->second.replica->is_head()) {
    return WhyNotHere({.request = request, .id = id, .generation = generation}, *view_, self_);
  }
  Place& place = found->second;
  absl::Status refusal = CheckSendersView(request, *place.replica);
  if (refusal.ok()) refusal = CheckLease(now, place);
  if (!refusal.ok()) {
    return Annotate(absl::StrCat("table '", view_->FindTable(id.table)->spec().name(),
                                 "' shard=", id.index.value()),
                    refusal);
  }
  // A question has no bytes, and its sender would send them if it were refused.
  if (!IsQuestion(request)) COVEY_RETURN_IF_ERROR(CheckBudget());
  if (place.shard == nullptr && place.failure.ok()) Open(now, id, place);
  if (!place.failure.ok()) return place.failure;
  return place.shard.get();
}

// What the head before had received, and nobody else has, comes again from who knows of this one; and
// it has to come before what is newer.
absl::Status ShardActor::CheckSendersView(const Message& request, const Replica& replica) const {
  const Epoch known(request.envelope.header().epoch());
  if (!request.envelope.has_push_request() || known >= replica.head_since()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      view_->NameOf(self_.node), " leads its chain since epoch ", replica.head_since().value(),
      ", the push was sent by the view of epoch ", known.value(), "; follow the newer view"));
}

absl::Status ShardActor::CheckLease(absl::Time now, const Place& place) const {
  if (!place.needs_lease || now < lease_until_ || Planted(PlantedBug::kIgnoreLease)) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(
      view_->NameOf(self_.node), " alone holds it and has not heard from the scheduler for ",
      absl::FormatDuration(absl::Trunc(now - lease_until_, absl::Milliseconds(1))),
      " longer than its lease, so another server may hold it by now; start the "
      "scheduler again, or give the table two replicas"));
}

void ShardActor::FollowLease(absl::Time now, Place& place, Outbox& outbox) {
  if (place.shard == nullptr) return;
  const absl::Status lease = CheckLease(now, place);
  if (lease.ok()) {
    place.shard->Resume(now, outbox);
  } else if (!place.shard->suspended()) {
    place.shard->Suspend(lease, outbox);
  }
}

void ShardActor::Open(absl::Time now, ShardId id, Place& place) {
  unopened_.erase(id);
  place.failure = place.replica->Open(now);
  if (!place.failure.ok() || !place.replica->is_head()) return;
  if (place.replica->content() == nullptr) {
    place.failure = absl::UnavailableError(
        "the content was lost when its digest turned out wrong; another server takes over, retry");
    return;
  }
  auto shard = Shard::Open(id, view_, *place.replica, {.spares = spares_, .counters = counters_});
  if (shard.ok()) {
    place.shard = *std::move(shard);
  } else {
    place.failure = shard.status();
  }
}

void ShardActor::Wake(absl::Time now, Outbox& outbox) {
  if (now >= next_deadline_) {
    for (auto& [id, place] : places_) {
      FollowLease(now, place, outbox);
      if (place.replica->NextWake() <= now) place.replica->Wake(now, outbox);
      if (place.shard != nullptr) place.shard->FollowChain(now, outbox);
      if (place.shard != nullptr && place.shard->NextWake() <= now) place.shard->Wake(now, outbox);
    }
    SendReports(outbox);
    next_deadline_ = EarliestDeadline();
  }
  if (now >= next_report_) Report(now, outbox);
  // One at a time, so that requests need not wait for all.
  if (!unopened_.empty()) {
    const ShardId id = *unopened_.begin();
    Open(now, id, places_.at(id));
  }
}

absl::Time ShardActor::NextWake() const {
  if (!unopened_.empty()) return absl::InfinitePast();
  return std::min(next_deadline_, next_report_);
}

void ShardActor::Report(absl::Time now, Outbox& outbox) {
  next_report_ = now + options_.report_every;
  proto::ServerLoad load;
  AsynchronyByTable tables;
  for (const auto& [id, place] : places_) {
    const ShardContent* content = place.replica->content();
    const uint64_t bytes = content == nullptr ? 0 : content->bytes();
    load.set_table_bytes(load.table_bytes() + bytes);
    if (place.shard == nullptr) {
      load.set_replica_bytes(load.replica_bytes() + bytes);
      continue;
    }
    AddAsynchrony(place.shard->ReportAsynchrony(), tables);
  }
  for (const auto& [table, report] : tables) *load.add_tables() = report;
  load.set_pushes(counters_.pushes);
  load.set_pulls(counters_.pulls);
  load.set_duplicates(counters_.duplicates);
  CountQueued();
  load.set_queued_bytes(queued_bytes_);
  load.set_refused(counters_.refused);
  load.set_replicated(counters_.replicated);
  load.set_content_bytes(counters_.content_bytes);
  load.set_unfit_replicas(counters_.unfit_replicas);
  load.set_malformed(counters_.malformed + (options_.malformed_at_transport == nullptr
                                                ? 0
                                                : options_.malformed_at_transport()));
  Message message;
  message.set_to({self_.node, 0});
  *message.envelope.mutable_heartbeat_request()->mutable_load() = std::move(load);
  outbox.Send(std::move(message));
}

const Shard* ShardActor::FindShard(ShardId id) const {
  const auto found = places_.find(id);
  return found == places_.end() ? nullptr : found->second.shard.get();
}

const Replica* ShardActor::FindReplica(ShardId id) const {
  const auto found = places_.find(id);
  return found == places_.end() ? nullptr : found->second.replica.get();
}

}  // namespace covey::server
