// SPDX-License-Identifier: Apache-2.0

// What a Replica does with messages along the chain; the rest of it is in replica.cc.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/planted_bug.h"
#include "common/net/frame_checksum.h"
#include "common/tensor/kernels.h"
#include "common/tensor/wire_format_proto.h"
#include "server/replication/replica.h"

namespace covey::server {

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

bool Replica::IsOfThisChain(const Message& message, const proto::ChainPosition& chain,
                            Outbox& outbox) const {
  if (chain.chain_epoch() > chain_.chain_epoch()) return false;
  if (chain.chain_epoch() == chain_.chain_epoch() || Planted(PlantedBug::kAcceptOldEpoch)) {
    return true;
  }
  Refuse(message, outbox);
  return false;
}

void Replica::Refuse(const Message& message, Outbox& outbox) const {
  Message reply = MakeReply(message);
  *reply.envelope.mutable_replicate_reply()->mutable_chain() = chain_;
  SetStatus(absl::AbortedError(absl::StrCat("the chain is that of epoch ", chain_.chain_epoch(),
                                            " now; follow the newer view")),
            reply);
  outbox.Send(std::move(reply));
}

void Replica::OnReply(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::ReplicateReply& reply = message.envelope.replicate_reply();
  if (link_ == nullptr || message.from() != link_->successor()) return;
  if (reply.chain().generation() != generation_) return;
  if (message.envelope.has_status()) {
    if (reply.chain().chain_epoch() > chain_.chain_epoch()) link_->SetRefused();
    return;
  }
  if (reply.chain().chain_epoch() != chain_.chain_epoch() || content_ == nullptr) return;
  const uint64_t before = durable_;
  link_->OnReply(now, reply, source(), outbox);
  Settle(now);
  if (durable_ > before && !is_head()) Acknowledge(/*missing=*/false, outbox);
}

void Replica::Acknowledge(bool missing, Outbox& outbox) const {
  Message message;
  message.set_to(predecessor_);
  proto::ReplicateReply& reply = *message.envelope.mutable_replicate_reply();
  *reply.mutable_chain() = chain_;
  if (content_ != nullptr) {
    reply.set_held_index(content_->index());
    reply.set_durable_index(durable_);
  } else {
    reply.set_wants_content(true);
    reply.set_next_piece(import_ == nullptr ? 0 : import_->next_piece());
  }
  reply.set_missing(missing);
  outbox.Send(std::move(message));
}

void Replica::OnRecord(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::ReplicateRequest& request = message.envelope.replicate_request();
  if (!IsOfThisChain(message, request.chain(), outbox)) return;
  if (message.from() != predecessor_ && !Planted(PlantedBug::kAcceptOldEpoch)) return;
  if (may_open() && !Open(now).ok()) return;
  const bool is_next =
      content_ != nullptr && !IsQuery(request) &&
      (request.index() == content_->index() + 1 ||
       (request.index() > content_->index() && Planted(PlantedBug::kSkipMissingRecord)));
  if (is_next) {
    auto record = ShardRecordOf(message, content_->element_count());
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
  absl::Status status;
  if (record.version == Version() || record.gradient.format == proto::WIRE_FLOAT32) {
    status = content_->Apply(now, record, record.gradient.frame.As<float>());
  } else {
    Buffer gradient = environment_.spares.Take(content_->value_bytes());
    Decode(WireFormatFromProto(record.gradient.format).value(), record.gradient.frame.bytes(),
           gradient.MutableAs<float>());
    status = content_->Apply(now, record, gradient.As<float>());
    environment_.spares.Retire(std::move(gradient));
  }
  if (!status.ok() || !record.digest || *record.digest == content_->Digest()) return status;
  return absl::DataLossError(
      absl::StrCat("after record ", record.index, " its content differs from the others'"));
}

bool Replica::BeginImport(absl::Time now) {
  auto rules = RulesOf(*view_->FindTable(id_.table), *view_->FindShard(id_));
  if (!rules.ok()) return false;
  auto content = ShardContent::Create(now, rules->shard, environment_.spares);
  if (!content.ok()) return false;
  import_ = std::make_unique<ContentImport>(*std::move(content));
  Enter(ReplicaState::kImporting);
  return true;
}

void Replica::EndImport(absl::Time now) {
  content_ = import_->Take();
  import_.reset();
  Enter(ReplicaState::kCatchingUp);
  log_.Reset(content_->index() + 1);
  if (link_ != nullptr) {
    const Address address = link_->successor();
    link_.reset();
    proto::Replica successor;
    successor.set_node(address.node.value());
    successor.set_loop(address.loop);
    successor.set_joining(true);  // As all are behind a joining one.
    LinkTo(now, successor);
  }
  Settle(now);
}

void Replica::OnPiece(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::ReplicaPiece& piece = message.envelope.replica_piece();
  if (!IsOfThisChain(message, piece.chain(), outbox)) return;
  if (message.from() != predecessor_ || !IsJoining(state_)) return;
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
