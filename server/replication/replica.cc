// SPDX-License-Identifier: Apache-2.0
#include "server/replication/replica.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/planted_bug.h"
#include "common/base/status_macros.h"
#include "common/net/frame_checksum.h"

namespace covey::server {
namespace {

// How often a joining replica tells its predecessor what it holds.
constexpr absl::Duration kAnnounceEvery = absl::Milliseconds(300);

// Its frames are not in lent memory afterwards.
void KeepFrames(BufferPool& spares, ShardRecord& record) {
  Keep(record.gradient, spares);
  if (!record.initial_state) return;
  for (EncodedGradient& slot : record.initial_state->slots) slot.frame = spares.Kept(slot.frame);
}

}  // namespace

Replica::Replica(ShardId id, uint64_t generation, const Environment& environment)
    : id_(id),
      generation_(generation),
      environment_(environment),
      place_(id, generation),
      downstream_(place_, reports_,
                  {.records = environment.counters.replicated,
                   .content_bytes = environment.counters.content_bytes,
                   .confirmation = environment.counters.replication}),
      table_bytes_(environment.tables) {}

void Replica::SetView(absl::Time now, std::shared_ptr<const ClusterView> view, const Address& self,
                      Outbox& outbox) {
  view_ = std::move(view);
  const proto::Shard& shard = *view_->FindShard(id_);
  if (place_.Follows(shard)) return;
  const bool overtaken = place_.Follow(shard, self);
  FollowRole(shard.chain(place_.position()).joining(), overtaken);
  const int next = place_.position() + 1;
  downstream_.Follow(now, next < shard.chain_size() ? &shard.chain(next) : nullptr);
  if (content_ != nullptr) downstream_.Send(now, held(), outbox);
  announce_at_ = is_head() ? absl::InfiniteFuture() : now;
  if (!is_head()) Wake(now, outbox);
}

void Replica::FollowRole(bool joining, bool overtaken) {
  if (joining) {
    if (IsJoining(state_) && !overtaken) return;
    Drop();
    Enter(ReplicaState::kRequesting);
    return;
  }
  switch (state_) {
    case ReplicaState::kFresh:
    case ReplicaState::kLoading:
      return;
    case ReplicaState::kUnfit:
      // Reports of an older chain count no longer.
      reports_.push_back(place_.MakeReport(proto::ReplicaReport::UNFIT, place_.self().node,
                                           "it has dropped its content"));
      return;
    case ReplicaState::kRequesting:
    case ReplicaState::kImporting:
      RejectContent(absl::DataLossError("it is to have joined, and holds no content any more"),
                    ReplicaState::kUnfit);
      return;
    case ReplicaState::kCatchingUp:
      Enter(ReplicaState::kJoined);
      [[fallthrough]];
    case ReplicaState::kJoined:
      if (!overtaken || content_->index() <= durable()) return;
      RejectContent(absl::AbortedError(absl::StrCat(
                        "it holds record ", content_->index(), ", of which only ", durable(),
                        " are known to be held by the servers that are in front now")),
                    ReplicaState::kUnfit);
      return;
  }
}

void Replica::Enter(ReplicaState next) {
  COVEY_CHECK(IsLegalTransition(kReplicaTransitions, state_, next));
  state_ = next;
  COVEY_CHECK(HasContent(state_) == (content_ != nullptr));
  if (state_ == ReplicaState::kJoined && view_->FindTable(id_.table)->restore() != 0) {
    reports_.push_back(place_.MakeReport(proto::ReplicaReport::LOADED, place_.self().node, ""));
  }
}

void Replica::Drop() {
  content_.reset();
  import_.reset();
  downstream_.Forget();
}

void Replica::RejectContent(const absl::Status& why, ReplicaState next) {
  ++environment_.counters.unfit_replicas;
  LogWarning(
      "replica_unfit",
      {{"table", id_.table.value()}, {"shard", id_.index.value()}, {"reason", why.message()}});
  Drop();
  Enter(next);
  if (next == ReplicaState::kUnfit) {
    reports_.push_back(
        place_.MakeReport(proto::ReplicaReport::UNFIT, place_.self().node, why.message()));
  }
}

absl::Status Replica::Open(absl::Time now) {
  if (!may_open()) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<ShardContent>> content = MakeContent(now);
  if (!content.ok()) {
    return Annotate(absl::StrCat("table=", view_->FindTable(id_.table)->spec().name()),
                    content.status());
  }
  load_from_ = LoadSourceOf(*view_->FindTable(id_.table), *view_->FindShard(id_));
  if (load_from_) {
    import_ = std::make_unique<ContentImport>(*std::move(content), load_from_->takes);
    Enter(ReplicaState::kLoading);
  } else {
    content_ = *std::move(content);
    Enter(ReplicaState::kJoined);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ShardContent>> Replica::MakeContent(absl::Time now) {
  COVEY_ASSIGN_OR_RETURN(const TableRules rules,
                         RulesOf(*view_->FindTable(id_.table), *view_->FindShard(id_)));
  COVEY_ASSIGN_OR_RETURN(const uint64_t bytes, ShardContent::MemoryBytesOf(rules.shard));
  COVEY_RETURN_IF_ERROR(table_bytes_.Reserve(bytes));
  return ShardContent::Create(now, rules.shard, environment_.memory);
}

void Replica::ReportTableBytes() {
  table_bytes_.Set(content_ != nullptr  ? content_->memory_bytes()
                   : import_ != nullptr ? import_->memory_bytes()
                                        : 0);
}

absl::Status Replica::CheckRoomForRows(std::span<const uint64_t> keys) const {
  const SparseShard& rows = *content_->sparse();
  // Nearly always there is room for all of them, and none is looked up.
  if (table_bytes_.CheckRoom(keys.size() * rows.layout().row_bytes()).ok()) {
    return absl::OkStatus();
  }
  return table_bytes_.CheckRoom(rows.RowBytesFor(rows.Foresee(keys)));
}

void Replica::Load(absl::Time now, const absl::StatusOr<Message>& piece, Outbox& outbox) {
  if (state_ != ReplicaState::kLoading) return;
  if (!piece.ok()) return RejectContent(piece.status(), ReplicaState::kUnfit);
  const absl::StatusOr<bool> complete = import_->Add(now, *piece);
  if (!complete.ok()) return RejectContent(complete.status(), ReplicaState::kUnfit);
  if (!*complete) return;
  content_ = import_->Take();
  import_.reset();
  Enter(ReplicaState::kJoined);
  const proto::Shard& shard = *view_->FindShard(id_);
  const int next = place_.position() + 1;
  downstream_.StartFrom(now, held(), next < shard.chain_size() && shard.chain(next).joining());
  downstream_.Send(now, held(), outbox);
  // The records that came meanwhile were dropped.
  if (!is_head()) Acknowledge(/*missing=*/true, outbox);
}

void Replica::Append(absl::Time now, ShardRecord record, const Gradient& gradient, Outbox& outbox) {
  record.index = content_->index() + 1;
  // Length, keys and samples were checked on arrival.
  COVEY_CHECK(content_->Apply(now, record, gradient).ok());
  if (downstream_.DigestIsDue(record)) record.digest = content_->RecordDigest();
  // Recordings hold dense tables only.
  RecordObserver* const observer = content_->sparse() == nullptr ? environment_.observer : nullptr;
  if (observer != nullptr) {
    if (observer->keeps_gradients()) KeepFrames(environment_.spares, record);
    observer->OnAppended(now, {.id = id_,
                               .table = *view_->FindTable(id_.table),
                               .shard = *view_->FindShard(id_),
                               .head_since = head_since(),
                               .record = record,
                               .gradient = gradient,
                               .content = *content_});
  }
  PassOn(now, std::move(record), outbox);
}

void Replica::PassOn(absl::Time now, ShardRecord record, Outbox& outbox) {
  const bool is_logged = environment_.held != nullptr && environment_.held->wants_records();
  const bool is_last =
      (record.cut != 0 || is_logged) && HasLastFull(*view_->FindShard(id_), place_.self());
  HeldRecords* const held_records = is_logged && is_last ? environment_.held : nullptr;
  // Kept until the successor has acknowledged the record, or until it is in the store.
  if (link() != nullptr || (held_records != nullptr && held_records->KeepsFrame(id_))) {
    KeepFrames(environment_.spares, record);
  }
  if (held_records != nullptr) {
    // Logs of updates are for arrays; rows are always stored whole.
    const uint64_t log_bytes_max = content_->sparse() != nullptr ? 0 : content_->bytes();
    held_records->OnHeld(id_, generation_, record, log_bytes_max);
  }
  if (is_last && record.cut != 0) {
    cuts_.push_back(
        {.snapshot = record.cut, .epoch = record.cut_epoch, .content = content_->Cut()});
  }
  downstream_.PassOn(now, std::move(record), held(), outbox);
}

void Replica::SetEarlyAcksPending(absl::Time now, bool pending, Outbox& outbox) {
  if (!downstream_.SetEarlyAcksPending(pending)) return;
  if (content_ != nullptr) downstream_.Send(now, held(), outbox);
}

void Replica::Wake(absl::Time now, Outbox& outbox) {
  if (!is_head() && now >= announce_at_) {
    const bool joining = IsJoining(state_);
    announce_at_ = joining ? now + kAnnounceEvery : absl::InfiniteFuture();
    // Records of this chain were dropped while this server did not know it.
    if (joining || content_ != nullptr) Acknowledge(/*missing=*/!joining, outbox);
  }
  if (content_ != nullptr) downstream_.Wake(now, held(), outbox);
}

absl::Time Replica::NextWake() const {
  if (content_ == nullptr) return announce_at_;
  return std::min(announce_at_, downstream_.NextWake());
}

std::string Replica::SuccessorName() const {
  return link() == nullptr ? "" : view_->NameOf(link()->successor().node);
}

void Replica::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  switch (message.envelope.body_case()) {
    case proto::Envelope::kReplicateReply:
      OnReply(now, message, outbox);
      return;
    case proto::Envelope::kReplicateRequest:
      OnRecord(now, message, outbox);
      return;
    case proto::Envelope::kReplicaPiece:
      OnPiece(now, message, outbox);
      return;
    default:
      return;
  }
}

void Replica::OnReply(absl::Time now, const Message& message, Outbox& outbox) {
  if (message.envelope.has_status()) {
    downstream_.OnRefusal(message);
    return;
  }
  if (content_ == nullptr) return;
  const uint64_t before = durable();
  downstream_.OnReply(now, message, held(), outbox);
  if (durable() > before && !is_head()) Acknowledge(/*missing=*/false, outbox);
}

void Replica::Acknowledge(bool missing, Outbox& outbox) const {
  Message message;
  message.set_to(place_.predecessor());
  proto::ReplicateReply& reply = *message.envelope.mutable_replicate_reply();
  *reply.mutable_chain() = place_.chain();
  if (content_ != nullptr) {
    reply.set_held_index(content_->index());
    reply.set_durable_index(durable());
  } else {
    reply.set_wants_content(true);
    reply.set_next_piece(import_ == nullptr ? 0 : import_->next_piece());
  }
  reply.set_missing(missing);
  outbox.Send(std::move(message));
}

bool Replica::IsFromPredecessor(const Message& message) {
  if (message.from() == place_.predecessor()) return true;
  ++environment_.counters.malformed;
  return false;
}

void Replica::OnRecord(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::ReplicateRequest& request = message.envelope.replicate_request();
  if (!place_.Admits(message, request.chain(), outbox)) return;
  if (!IsFromPredecessor(message) && !Planted(PlantedBug::kAcceptOldEpoch)) return;
  if (may_open() && !Open(now).ok()) return;
  if (state_ == ReplicaState::kLoading) return;
  const bool is_next =
      content_ != nullptr && !IsQuery(request) &&
      (request.index() == content_->index() + 1 ||
       (request.index() > content_->index() && Planted(PlantedBug::kSkipMissingRecord)));
  if (is_next) {
    auto record = ShardRecordOf(message, content_->shape());
    if (!record.ok() || !CheckFrameChecksums(message).ok()) {
      ++environment_.counters.malformed;
    } else if (const absl::Status status = ApplyRecord(now, *record); !status.ok()) {
      RejectContent(status, AfterWrongContent());
    } else {
      PassOn(now, *std::move(record), outbox);
    }
  }
  if (is_head()) return;
  Acknowledge(/*missing=*/content_ != nullptr && request.index() > content_->index(), outbox);
}

absl::Status Replica::ApplyRecord(absl::Time now, ShardRecord record) {
  COVEY_ASSIGN_OR_RETURN(const GradientBuffers gradient,
                         Decoded(record.gradient, content_->shape(), environment_.spares));
  const absl::Status status = content_->Apply(now, record, gradient.spans());
  if (!status.ok() || !record.digest || *record.digest == content_->RecordDigest()) return status;
  return absl::DataLossError(
      absl::StrCat("after record ", record.index, " its content differs from the others'"));
}

bool Replica::BeginImport(absl::Time now) {
  absl::StatusOr<std::unique_ptr<ShardContent>> content = MakeContent(now);
  if (content.status() != std::exchange(import_failure_, content.status()) && !content.ok()) {
    LogWarning("replica_not_filled", {{"table", id_.table.value()},
                                      {"shard", id_.index.value()},
                                      {"reason", content.status().message()}});
  }
  if (!content.ok()) return false;
  import_ = std::make_unique<ContentImport>(*std::move(content));
  Enter(ReplicaState::kImporting);
  return true;
}

void Replica::EndImport(absl::Time now) {
  content_ = import_->Take();
  import_.reset();
  Enter(ReplicaState::kCatchingUp);
  downstream_.StartFrom(now, held(), /*is_joining=*/true);
}

void Replica::OnPiece(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::ReplicaPiece& piece = message.envelope.replica_piece();
  if (!place_.Admits(message, piece.chain(), outbox)) return;
  if (!IsFromPredecessor(message) || !IsJoining(state_)) return;
  if (message.frames.empty()) {
    // A query. Pieces of content other than the query is about are of no use any more.
    if (import_ != nullptr && import_->index() != piece.index()) {
      import_.reset();
      Enter(ReplicaState::kRequesting);
    }
  } else {
    if (content_ != nullptr && piece.piece() == 0 && piece.index() > content_->index()) {
      Drop();
      Enter(ReplicaState::kRequesting);
    }
    if (content_ == nullptr) {
      if (import_ == nullptr && !BeginImport(now)) return;
      ImportPiece(now, message);
    }
  }
  Acknowledge(/*missing=*/Lacks(piece), outbox);
}

void Replica::ImportPiece(absl::Time now, const Message& message) {
  if (!CheckFrameChecksums(message).ok()) {
    ++environment_.counters.malformed;
  } else if (const absl::StatusOr<bool> complete = import_->Add(now, message); !complete.ok()) {
    RejectContent(complete.status(), ReplicaState::kRequesting);
  } else if (*complete) {
    EndImport(now);
  }
}

bool Replica::Lacks(const proto::ReplicaPiece& piece) const {
  // Content that is older than the pieces stays until the first of them comes.
  if (content_ != nullptr) return content_->index() < piece.index();
  return import_ == nullptr || import_->next_piece() <= piece.piece();
}

}  // namespace covey::server
