#include "server/shard_actor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/server_load.h"
#include "server/shard/push_checks.h"
#include "server/shard/replies.h"

namespace covey::server {
namespace {

// Queued bytes are counted once per so many requests: rarely enough to cost nothing, often enough
// to notice a growing queue.
constexpr uint64_t kRequestsPerCount = 16;
// Advice to a client whose request was refused because the lease has expired.
constexpr uint32_t kLeaseRetryAfterMs = 1000;

proto::ServerLoad LoadOf(const ShardCounters& counters) {
  proto::ServerLoad load;
  load.set_pushes(counters.pushes);
  load.set_pulls(counters.pulls);
  load.set_duplicates(counters.duplicates);
  load.set_malformed(counters.malformed);
  load.set_refused(counters.refused);
  load.set_replicated(counters.replicated);
  load.set_content_bytes(counters.content_bytes);
  load.set_unfit_replicas(counters.unfit_replicas);
  return load;
}

}  // namespace

ShardActor::ShardActor(const Options& options)
    : options_(options), spares_(options.spare_bytes_max) {}

void ShardActor::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  Dispatch(now, message, outbox);
  SendReports(outbox);
}

void ShardActor::Dispatch(absl::Time now, const Message& message, Outbox& outbox) {
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
      PassAlongChain(now, message, outbox);
      return;
    default:
      break;
  }
  ++counters_.malformed;
}

void ShardActor::AdoptLease(absl::Time now, const proto::LeaseNotice& lease, Outbox& outbox) {
  lease_until_ = absl::FromUnixNanos(lease.until_ns());
  next_deadline_ = absl::InfiniteFuture();
  for (auto& [id, host] : hosts_) Keep(id, host->SetLease(now, lease_until_, outbox));
}

void ShardActor::AdoptView(absl::Time now, const Message& message, Outbox& outbox) {
  auto view = ClusterView::Make(message.envelope.watch_view_reply().view());
  if (!view.ok() || (*view)->epoch() <= view_->epoch()) return;
  view_ = *std::move(view);
  self_ = message.to();
  if (next_report_ == absl::InfiniteFuture()) next_report_ = now + options_.report_every;

  auto before = std::exchange(hosts_, {});
  unopened_.clear();
  next_deadline_ = absl::InfiniteFuture();
  std::vector<ShardId> shards;
  for (const proto::Table& table : view_->proto().tables()) {
    for (const proto::Shard& shard : table.shards()) {
      if (!ClusterView::PositionInChain(shard, self_)) continue;
      const ShardId id{TableId(table.id()), ShardIndex(shard.index())};
      shards.push_back(id);
      std::unique_ptr<ShardHost>& host = hosts_[id];
      const auto known = before.find(id);
      if (known != before.end() && known->second->replica().generation() == shard.generation()) {
        host = std::move(known->second);
        before.erase(known);
      } else {
        host = std::make_unique<ShardHost>(
            id, shard.generation(), lease_until_,
            ShardHost::Environment{.spares = spares_, .counters = counters_});
      }
      Keep(id, host->SetView(now, view_, self_, outbox));
    }
  }
  for (auto& [id, host] : before) {
    // Of a host that is gone only the reports count.
    for (auto& report : host->Close(now, *view_, outbox).reports) {
      reports_.push_back(std::move(report));
    }
  }
  neighbors_.Follow(*view_, self_, shards, outbox);
}

void ShardActor::Keep(ShardId id, ShardHost::Settled settled) {
  next_deadline_ = std::min(next_deadline_, settled.next_wake);
  if (settled.needs_open) {
    unopened_.insert(id);
  } else if (!unopened_.empty()) {
    unopened_.erase(id);
  }
  for (auto& report : settled.reports) reports_.push_back(std::move(report));
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

ShardHost* ShardActor::FindHost(ShardId id, uint64_t generation) const {
  const auto found = hosts_.find(id);
  if (found == hosts_.end() || found->second->replica().generation() != generation) return nullptr;
  return found->second.get();
}

void ShardActor::PassAlongChain(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::Envelope& envelope = message.envelope;
  const proto::ChainPosition& chain =
      envelope.has_replicate_request() ? envelope.replicate_request().chain()
      : envelope.has_replicate_reply() ? envelope.replicate_reply().chain()
                                       : envelope.replica_piece().chain();
  const ShardId id{TableId(chain.table()), ShardIndex(chain.shard())};
  if (ShardHost* host = FindHost(id, chain.generation())) {
    Keep(id, host->OnChainMessage(now, message, outbox));
  } else if (auto refusal = RefusalToStranger(message, chain, *view_, self_)) {
    outbox.Send(*std::move(refusal));
  }
}

void ShardActor::Push(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::PushRequest& push = message.envelope.push_request();
  const ShardId id{TableId(push.id().table()), ShardIndex(push.id().shard())};
  if (ShardHost* host = Admit(
          now, {.request = message, .id = id, .generation = push.shard_generation()}, outbox)) {
    Keep(id, host->Push(now, message, outbox));
  }
}

void ShardActor::Pull(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::PullRequest& pull = message.envelope.pull_request();
  const ShardId id{TableId(pull.table()), ShardIndex(pull.shard())};
  if (ShardHost* host = Admit(
          now, {.request = message, .id = id, .generation = pull.shard_generation()}, outbox)) {
    Keep(id, host->Pull(now, message, outbox));
  }
}

ShardHost* ShardActor::Admit(absl::Time now, const MisdirectedRequest& request, Outbox& outbox) {
  ShardHost* const host = FindHost(request.id, request.generation);
  absl::Status refusal = host != nullptr && host->is_head()
                             ? host->CheckRequest(now, request.request)
                             : WhyNotHere(request, *view_, self_);
  // A query has no bytes, and its sender would send them if it were refused.
  if (refusal.ok() && !IsQuery(request.request)) refusal = CheckBudget();
  if (refusal.ok() && host->needs_open()) Keep(request.id, host->Open(now, outbox));
  if (refusal.ok()) refusal = host->failure();
  if (refusal.ok()) return host;
  Refuse(now, request.request, refusal, outbox);
  return nullptr;
}

void ShardActor::Refuse(absl::Time now, const Message& request, const absl::Status& why,
                        Outbox& outbox) {
  Message reply = BeginReply(request);
  MakeRefusal(why, reply);
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
  for (const auto& [id, host] : hosts_) queued_bytes_ += host->queued_bytes();
}

void ShardActor::Wake(absl::Time now, Outbox& outbox) {
  if (now >= next_deadline_) {
    next_deadline_ = absl::InfiniteFuture();
    for (auto& [id, host] : hosts_) Keep(id, host->Wake(now, outbox));
    SendReports(outbox);
  }
  if (now >= next_report_) ReportLoad(now, outbox);
  // One at a time, so that requests need not wait for all.
  if (!unopened_.empty()) {
    const ShardId id = *unopened_.begin();
    Keep(id, hosts_.at(id)->Open(now, outbox));
    SendReports(outbox);
  }
}

absl::Time ShardActor::NextWake() const {
  if (!unopened_.empty()) return absl::InfinitePast();
  return std::min(next_deadline_, next_report_);
}

void ShardActor::ReportLoad(absl::Time now, Outbox& outbox) {
  next_report_ = now + options_.report_every;
  CountQueued();
  ServerLoadSum load;
  load.Add(LoadOf(counters_));
  for (const auto& [id, host] : hosts_) load.Add(host->Load());
  if (options_.malformed_at_transport != nullptr) {
    proto::ServerLoad transport;
    transport.set_malformed(options_.malformed_at_transport());
    load.Add(transport);
  }
  Message message;
  message.set_to({self_.node, 0});
  *message.envelope.mutable_heartbeat_request()->mutable_load() = load.Take();
  outbox.Send(std::move(message));
}

const Shard* ShardActor::FindShard(ShardId id) const {
  const auto found = hosts_.find(id);
  return found == hosts_.end() ? nullptr : found->second->shard();
}

const Replica* ShardActor::FindReplica(ShardId id) const {
  const auto found = hosts_.find(id);
  return found == hosts_.end() ? nullptr : &found->second->replica();
}

}  // namespace covey::server
