// SPDX-License-Identifier: Apache-2.0
#include "server/shard_actor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/planted_bug.h"
#include "common/net/own_process.h"
#include "common/net/sender.h"
#include "server/server_load.h"
#include "server/shard/push_checks.h"
#include "server/shard/replies.h"
#include "server/table/device_memory.h"
#include "server/table/host_memory.h"

namespace covey::server {
namespace {

// Advice to a client whose request was refused because the lease has expired.
constexpr absl::Duration kLeaseRetryAfter = absl::Seconds(1);

std::unique_ptr<TableMemory> MakeMemory(const ShardActor::Options& options, BufferPool& spares) {
  RowMemory& rows = options.rows == nullptr ? ProcessRowMemory() : *options.rows;
  if (options.device == nullptr) return std::make_unique<HostMemory>(spares, rows);
  return std::make_unique<DeviceMemory>(*options.device, spares, rows);
}

}  // namespace

ShardActor::ShardActor(const Options& options)
    : options_(options),
      spares_(options.spare_bytes_max),
      memory_(MakeMemory(options_, spares_)),
      budget_(options.queued_bytes_max),
      rate_(options.rate),
      key_lists_(options.queued_bytes_max / kKeyListShareOfQueue),
      snapshot_writer_([this](ShardId id, Version cut) {
        const Replica* const replica = FindReplica(id);
        return replica != nullptr && replica->content() != nullptr &&
               replica->content()->version() > cut;
      }) {
  if (options_.recording) recorder_.emplace(*options_.recording);
}

void ShardActor::SetQueuedBytesMax(size_t bytes_max) {
  budget_.SetMax(bytes_max);
  key_lists_.SetBytesMax(bytes_max / kKeyListShareOfQueue);
  ReportKeyListBytes();
}

void ShardActor::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  if (!IsFromOwnProcess(message) && IsFromImpostor(message, *view_) &&
      !Planted(PlantedBug::kHeedImpostors)) {
    ++counters_.impostors;
    return;
  }
  Dispatch(now, message, outbox);
  FinishCall(now, outbox);
}

bool ShardActor::KnowsSender(const Message& message) const {
  return SenderOf(message, *view_) != nullptr;
}

void ShardActor::ReportKeyListBytes() {
  const QueueBudget::Waiting lists{.others = key_lists_.bytes()};
  budget_.Change(std::exchange(reported_key_lists_, lists), lists);
}

void ShardActor::FinishCall(absl::Time now, Outbox& outbox) {
  ReportKeyListBytes();
  rate_.NoteSent(now, counters_.reply_bytes);
  if (agenda_.has_for_snapshots()) ServeSnapshots(now, outbox);
  agenda_.SendReports({self_.node, 0}, outbox);
  if (recorder_) recorder_->Send(now, outbox);
  snapshot_writer_.SendLogs(outbox);
}

void ShardActor::ServeSnapshots(absl::Time now, Outbox& outbox) {
  HostAgenda::ForSnapshots todo = agenda_.TakeForSnapshots();
  const absl::Status store =
      options_.has_store
          ? absl::OkStatus()
          : absl::FailedPreconditionError(absl::StrCat(
                view_->NameOf(self_.node), " has no store; start all servers with --store DIR"));
  for (auto& [shard, cut] : todo.cuts) {
    if (!store.ok()) {
      snapshot_writer_.Fail(shard, std::string(store.message()), outbox);
      continue;
    }
    snapshot_writer_.Add(shard, hosts_.at(shard)->replica().generation(), std::move(cut), outbox);
  }
  for (const auto& [shard, why] : todo.failures) snapshot_writer_.Fail(shard, why, outbox);
  for (auto& [shard, source] : todo.loads) {
    if (store.ok()) {
      shard_loader_.Want(shard, std::move(source), self_.node, outbox);
    } else {
      agenda_.Keep(shard, hosts_.at(shard)->Load(now, store, outbox));
    }
  }
}

void ShardActor::OnStoreReply(absl::Time now, const Message& message, Outbox& outbox) {
  if (message.from().loop == kRecordingLoop) {
    if (recorder_) recorder_->OnStoreReply(message);
    return;
  }
  if (!shard_loader_.OnStoreReply(message, outbox)) {
    return snapshot_writer_.OnStoreReply(message, outbox);
  }
  for (const ShardLoader::Piece& piece : shard_loader_.TakePieces()) {
    const auto host = hosts_.find(piece.shard);
    if (host != hosts_.end()) {
      agenda_.Keep(piece.shard, host->second->Load(now, piece.message, outbox));
    }
  }
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
      if (IsFromOwnProcess(message)) {
        AdoptView(now, message, outbox);
        return;
      }
      break;
    case proto::Envelope::kLeaseNotice:
      if (IsFromOwnProcess(message)) {
        AdoptLease(now, message, outbox);
        return;
      }
      break;
    case proto::Envelope::kStoreReply:
      if (IsFromOwnProcess(message)) {
        OnStoreReply(now, message, outbox);
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

void ShardActor::AdoptLease(absl::Time now, const Message& notice, Outbox& outbox) {
  lease_until_ = absl::FromUnixNanos(notice.envelope.lease_notice().until_ns());
  agenda_.BeginRound();
  for (auto& [id, host] : hosts_) agenda_.Keep(id, host->SetLease(now, lease_until_, outbox));
  if (now < lease_until_) return;
  Message confirmation = MakeReply(notice);
  *confirmation.envelope.mutable_lease_notice() = notice.envelope.lease_notice();
  outbox.Send(std::move(confirmation));
}

void ShardActor::AdoptView(absl::Time now, const Message& message, Outbox& outbox) {
  auto view = ClusterView::Make(message.envelope.watch_view_reply().view());
  if (!view.ok() || (*view)->epoch() <= view_->epoch()) return;
  if (recorder_) CloseRecords(**view);
  view_ = *std::move(view);
  self_ = message.to();
  if (recorder_) recorder_->SetSelf(view_->proto().job(), self_);
  snapshot_writer_.FollowView(*view_, self_, outbox);
  if (next_report_ == absl::InfiniteFuture()) next_report_ = now + options_.report_every;

  auto before = std::exchange(hosts_, {});
  agenda_.BeginRound();
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
            ShardHost::Environment{.memory = *memory_,
                                   .spares = spares_,
                                   .counters = counters_,
                                   .budget = budget_,
                                   .key_lists = key_lists_,
                                   .observer = recorder_ ? &*recorder_ : nullptr,
                                   .held = &snapshot_writer_,
                                   .tables = options_.tables.get()});
      }
      agenda_.Keep(id, host->SetView(now, view_, self_, outbox));
    }
  }
  for (auto& [id, host] : before) agenda_.KeepReports(host->Close(now, *view_, outbox));
  neighbors_.Follow(*view_, self_, shards, outbox);
  key_lists_.ForgetClients([this](NodeId id) {
    const proto::Node* const node = view_->FindNode(id);
    return node == nullptr || node->state() != proto::Node::ALIVE;
  });
}

void ShardActor::CloseRecords(const ClusterView& next) {
  for (const auto& [id, host] : hosts_) {
    const Replica& replica = host->replica();
    if (!replica.is_head() || replica.content() == nullptr) continue;
    const proto::Shard* const shard = next.FindShard(id);
    const bool stays_head = shard != nullptr && shard->generation() == replica.generation() &&
                            ClusterView::PositionInChain(*shard, self_) == 0;
    if (!stays_head) recorder_->Close(id, *replica.content());
  }
}

void ShardActor::EndRecording(Outbox& outbox) {
  if (!recorder_) return;
  for (const auto& [id, host] : hosts_) {
    const Replica& replica = host->replica();
    if (replica.is_head() && replica.content() != nullptr) recorder_->Close(id, *replica.content());
  }
  recorder_->End(outbox);
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
    agenda_.Keep(id, host->OnChainMessage(now, message, outbox));
  } else if (auto refusal = RefusalToStranger(message, chain, *view_, self_)) {
    outbox.Send(*std::move(refusal));
  }
}

void ShardActor::Push(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::PushRequest& push = message.envelope.push_request();
  const ShardId id{TableId(push.id().table()), ShardIndex(push.id().shard())};
  ShardHost* host = Admit(now, {message, id, push.shard_generation()}, outbox);
  if (host != nullptr) agenda_.Keep(id, host->Push(now, message, outbox));
}

void ShardActor::Pull(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::PullRequest& pull = message.envelope.pull_request();
  const ShardId id{TableId(pull.table()), ShardIndex(pull.shard())};
  ShardHost* host = Admit(now, {message, id, pull.shard_generation()}, outbox);
  if (host != nullptr) agenda_.Keep(id, host->Pull(now, message, outbox));
}

ShardHost* ShardActor::Admit(absl::Time now, const MisdirectedRequest& request, Outbox& outbox) {
  ShardHost* const host = FindHost(request.id, request.generation);
  absl::Status refusal = host != nullptr && host->is_head()
                             ? host->CheckRequest(now, request.request)
                             : WhyNotHere(request, *view_, self_);
  if (refusal.ok() && request.request.envelope.has_pull_request()) {
    refusal = CheckReader(request.request, *view_);
  }
  // A query has no bytes, and refusing it would make its sender send them.
  absl::Duration retry_after;
  if (refusal.ok() && !IsQuery(request.request)) {
    refusal = budget_.Check(host->RoomFor(request.request));
    if (refusal.ok()) {
      refusal = rate_.Check(now);
      if (!refusal.ok()) retry_after = rate_.RetryAfter(now, request.request);
    }
  }
  if (refusal.ok()) {
    host->Reconsider(now);
    if (host->needs_open()) agenda_.Keep(request.id, host->Open(now, outbox));
    refusal = host->failure();
    if (absl::IsResourceExhausted(refusal)) retry_after = ShardHost::kReopenAfter;
  }
  if (refusal.ok()) {
    rate_.Admit(now, request.request);
    return host;
  }
  Refuse(now, request.request, refusal, retry_after, outbox);
  return nullptr;
}

void ShardActor::Refuse(absl::Time now, const Message& request, const absl::Status& why,
                        absl::Duration retry_after, Outbox& outbox) {
  Message reply = BeginReply(request);
  MakeRefusal(why, reply);
  if (absl::IsResourceExhausted(why)) ++counters_.refused;
  if (absl::IsUnavailable(why) && now >= lease_until_) retry_after = kLeaseRetryAfter;
  if (retry_after > absl::ZeroDuration()) {
    const absl::Duration rounded_up = absl::Ceil(retry_after, absl::Milliseconds(1));
    reply.envelope.mutable_status()->set_retry_after_ms(
        static_cast<uint32_t>(absl::ToInt64Milliseconds(rounded_up)));
  }
  outbox.Send(std::move(reply));
}

void ShardActor::Wake(absl::Time now, Outbox& outbox) {
  if (now >= agenda_.next_deadline()) {
    agenda_.BeginRound();
    for (auto& [id, host] : hosts_) agenda_.Keep(id, host->Wake(now, outbox));
    FinishCall(now, outbox);
  }
  if (now >= next_report_) ReportLoad(now, outbox);
  if (recorder_) recorder_->Send(now, outbox);
  // One shard at a time, so that requests do not wait for all of them.
  if (const auto id = agenda_.next_to_open()) {
    agenda_.Keep(*id, hosts_.at(*id)->Open(now, outbox));
    FinishCall(now, outbox);
  }
}

absl::Time ShardActor::NextWake() const {
  if (agenda_.next_to_open()) return absl::InfinitePast();
  const absl::Time recording = recorder_ ? recorder_->NextWake() : absl::InfiniteFuture();
  return std::min({agenda_.next_deadline(), next_report_, recording});
}

void ShardActor::ReportLoad(absl::Time now, Outbox& outbox) {
  next_report_ = now + options_.report_every;
  ServerLoadSum load;
  load.Add(LoadOf(counters_));
  for (const auto& [id, host] : hosts_) load.Add(host->Load());
  proto::ServerLoad sum = load.Take();
  sum.set_queued_bytes(sum.queued_bytes() + key_lists_.bytes());
  if (options_.malformed_at_transport != nullptr) {
    sum.set_malformed(sum.malformed() + options_.malformed_at_transport());
  }
  Message message;
  message.set_to({self_.node, 0});
  *message.envelope.mutable_heartbeat_request()->mutable_load() = std::move(sum);
  outbox.Send(std::move(message));
}

uint64_t ShardActor::replication_lag() const {
  uint64_t most = 0;
  for (const auto& [id, host] : hosts_) most = std::max(most, host->replica().lag());
  return most;
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
