#include "server/replica.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/planted_bug.h"
#include "common/net/frame_checksum.h"
#include "common/tensor/kernels.h"

namespace covey::server {
namespace {

// A joining replica tells the server in front so often what it holds.
constexpr absl::Duration kAnnounceEvery = absl::Milliseconds(300);
// A digest is one pass over the content; so it costs little beside so much work.
constexpr uint64_t kRecordsPerDigest = 64;
constexpr uint64_t kBytesPerDigest = 64 << 20;
// A joining successor that is silent for so long does not make pushes wait.
constexpr absl::Duration kFillingMayHoldUp = absl::Milliseconds(200);

}  // namespace

ChainVerdict JudgeChain(uint64_t own_epoch, uint64_t senders_epoch) {
  if (senders_epoch > own_epoch) return ChainVerdict::kDrop;
  if (senders_epoch == own_epoch || Planted(PlantedBug::kAcceptOldEpoch)) return ChainVerdict::kAct;
  return ChainVerdict::kRefuse;
}

void Replica::SetView(absl::Time now, std::shared_ptr<const ClusterView> view, const Address& self,
                      Outbox& outbox) {
  view_ = std::move(view);
  self_ = self;
  const proto::Shard& shard = *view_->FindShard(id_);
  if (chain_.chain_epoch() == shard.chain_epoch() && chain_.generation() == generation_) return;
  FollowChain(now, shard, self);
  if (content_ != nullptr) {
    if (link_ != nullptr) link_->Send(now, source(), outbox);
    Settle(now);
  }
  announce_at_ = is_head() ? absl::InfiniteFuture() : now;
  if (!is_head()) Wake(now, outbox);
}

void Replica::FollowChain(absl::Time now, const proto::Shard& shard, const Address& self) {
  const bool was_joining = joining_;
  const bool is_new = chain_.generation() != generation_;
  position_ = *ClusterView::PositionInChain(shard, self);
  joining_ = shard.chain(position_).joining();
  absl::btree_set<NodeId> in_front;
  for (int i = 0; i < position_; ++i) in_front.insert(NodeId(shard.chain(i).node()));
  const bool overtaken =
      !std::includes(in_front_.begin(), in_front_.end(), in_front.begin(), in_front.end());
  in_front_ = std::move(in_front);
  predecessor_ = position_ == 0 ? Address{}
                                : Address{NodeId(shard.chain(position_ - 1).node()),
                                          shard.chain(position_ - 1).loop()};
  chain_.set_table(id_.table.value());
  chain_.set_shard(id_.index.value());
  chain_.set_generation(generation_);
  chain_.set_chain_epoch(shard.chain_epoch());
  told_ready_ = false;
  was_joining_ = was_joining_ || joining_;
  if (joining_) unfit_ = false;
  if (!is_new && joining_ && (!was_joining || overtaken)) Drop();
  if (!is_new && !joining_ && overtaken && content_ != nullptr && content_->index() > durable_) {
    DeclareUnfit(
        absl::AbortedError(absl::StrCat("it holds record ", content_->index(), ", of which only ",
                                        durable_, " are known to be held by who is in front now")));
  }
  if (!joining_ && was_joining && content_ == nullptr) {
    DeclareUnfit(absl::DataLossError("it is to have joined, and holds no content any more"));
  }
  if (import_ != nullptr && overtaken) import_.reset();
  LinkTo(now, position_ + 1 < shard.chain_size()
                  ? std::optional<proto::Replica>(shard.chain(position_ + 1))
                  : std::nullopt);
}

void Replica::LinkTo(absl::Time now, std::optional<proto::Replica> successor) {
  if (!successor) {
    link_.reset();
    return;
  }
  const Address address{NodeId(successor->node()), successor->loop()};
  if (link_ == nullptr || link_->successor() != address) {
    link_ = std::make_unique<ReplicaLink>(
        now, address, successor->joining(),
        ReplicaLink::Records{.first = log_.first(), .newest = log_.next() - 1},
        ReplicaLink::Counters{.records = environment_.counters.replicated,
                              .content_bytes = environment_.counters.content_bytes});
  }
  link_->SetChain(now, chain_, successor->joining());
}

void Replica::Drop() {
  content_.reset();
  import_.reset();
  log_.Reset(1);
  durable_ = 0;
}

void Replica::DeclareUnfit(const absl::Status& why) {
  ++environment_.counters.unfit_replicas;
  LogWarning(
      "replica_unfit",
      {{"table", id_.table.value()}, {"shard", id_.index.value()}, {"reason", why.message()}});
  Drop();
  if (joining_) return;  // It asks again.
  unfit_ = true;
  Report(proto::ReplicaReport::UNFIT, self_.node, std::string(why.message()));
}

absl::Status Replica::Open(absl::Time now) {
  if (!may_open()) return absl::OkStatus();
  auto rules = RulesOf(*view_->FindTable(id_.table), *view_->FindShard(id_));
  if (!rules.ok()) return rules.status();
  auto content = ShardContent::Create(now, rules->shard, environment_.spares);
  if (!content.ok()) {
    return absl::Status(content.status().code(),
                        absl::StrCat("table=", view_->FindTable(id_.table)->spec().name(), ": ",
                                     content.status().message()));
  }
  content_ = *std::move(content);
  return absl::OkStatus();
}

void Replica::Append(absl::Time now, ShardRecord record, std::span<const float> gradient,
                     Outbox& outbox) {
  record.index = content_->index() + 1;
  // Length and samples were checked on arrival.
  COVEY_CHECK(content_->Apply(now, record, gradient).ok());
  if (link_ != nullptr && DigestIsDue(record)) record.digest = content_->Digest();
  PassOn(now, std::move(record), outbox);
}

bool Replica::DigestIsDue(const ShardRecord& record) {
  ++records_without_digest_;
  bytes_without_digest_ += record.gradient.frame.size();
  if (records_without_digest_ < kRecordsPerDigest && bytes_without_digest_ < kBytesPerDigest) {
    return false;
  }
  records_without_digest_ = bytes_without_digest_ = 0;
  return true;
}

void Replica::PassOn(absl::Time now, ShardRecord record, Outbox& outbox) {
  if (link_ == nullptr) {
    log_.Reset(record.index + 1);
  } else {
    log_.Add(std::move(record));
    link_->Send(now, source(), outbox);
  }
  Settle(now);
}

void Replica::SetKeepsPromises(absl::Time now, bool keeps_promises, Outbox& outbox) {
  if (keeps_promises_ == keeps_promises) return;
  keeps_promises_ = keeps_promises;
  if (link_ == nullptr || content_ == nullptr) return;
  link_->Send(now, source(), outbox);
  Settle(now);
}

void Replica::Settle(absl::Time now) {
  if (link_ == nullptr) {
    durable_ = content_->index();
    log_.Reset(durable_ + 1);
    return;
  }
  if (!link_->refused()) {
    const uint64_t held =
        link_->counts() ? std::min(content_->index(), link_->durable()) : content_->index();
    durable_ = std::max(durable_, held);
  }
  if (log_.IsFull() && !link_->counts() && now - link_->silent_since() > kFillingMayHoldUp) {
    link_->GiveUpFilling();
  }
  log_.TrimBelow(std::min(durable_ + 1, link_->NeedsFrom()));
  if (link_->is_ready() && !told_ready_) {
    told_ready_ = true;
    Report(proto::ReplicaReport::READY, link_->successor().node, "");
  }
}

void Replica::Report(proto::ReplicaReport::Kind kind, NodeId node, const std::string& reason) {
  proto::ReplicaReport& report = environment_.reports.emplace_back();
  report.set_table(chain_.table());
  report.set_shard(chain_.shard());
  report.set_generation(chain_.generation());
  report.set_chain_epoch(chain_.chain_epoch());
  report.set_node(node.value());
  report.set_kind(kind);
  report.set_reason(reason);
}

void Replica::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  switch (message.envelope.body_case()) {
    case proto::Envelope::kReplicateReply:
      ReceiveReply(now, message, outbox);
      return;
    case proto::Envelope::kReplicateRequest:
      ReceiveRecord(now, message, outbox);
      return;
    case proto::Envelope::kReplicaPiece:
      ReceivePiece(now, message, outbox);
      return;
    default:
      return;
  }
}

void Replica::Refuse(const Message& message, Outbox& outbox) const {
  Message reply = MakeReply(message);
  *reply.envelope.mutable_replicate_reply()->mutable_chain() = chain_;
  SetStatus(absl::AbortedError(absl::StrCat("the chain is that of epoch ", chain_.chain_epoch(),
                                            " now; follow the newer view")),
            reply);
  outbox.Send(std::move(reply));
}

void Replica::ReceiveReply(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::ReplicateReply& reply = message.envelope.replicate_reply();
  if (link_ == nullptr || message.from() != link_->successor()) return;
  if (reply.chain().generation() != generation_) return;
  if (message.envelope.has_status()) {
    if (reply.chain().chain_epoch() > chain_.chain_epoch()) link_->SetRefused();
    return;
  }
  if (reply.chain().chain_epoch() != chain_.chain_epoch() || content_ == nullptr) return;
  const uint64_t before = durable_;
  link_->Receive(now, reply, source(), outbox);
  Settle(now);
  if (durable_ > before && !is_head()) Answer(/*missing=*/false, outbox);
}

void Replica::Answer(bool missing, Outbox& outbox) const {
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

void Replica::ReceiveRecord(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::ReplicateRequest& request = message.envelope.replicate_request();
  switch (JudgeChain(chain_.chain_epoch(), request.chain().chain_epoch())) {
    case ChainVerdict::kDrop:
      return;
    case ChainVerdict::kRefuse:
      Refuse(message, outbox);
      return;
    case ChainVerdict::kAct:
      break;
  }
  if (message.from() != predecessor_ && !Planted(PlantedBug::kAcceptOldEpoch)) return;
  if (may_open() && !Open(now).ok()) return;
  const bool is_next =
      content_ != nullptr && !IsQuestion(request) &&
      (request.index() == content_->index() + 1 ||
       (request.index() > content_->index() && Planted(PlantedBug::kSkipMissingRecord)));
  if (is_next) {
    auto record = ShardRecordOf(message, content_->element_count());
    if (!record.ok() || !CheckFrameChecksums(message).ok()) {
      ++environment_.counters.malformed;
    } else if (const absl::Status status = ApplyRecord(now, *record); !status.ok()) {
      DeclareUnfit(status);
    } else {
      PassOn(now, *std::move(record), outbox);
    }
  }
  if (is_head()) return;
  Answer(/*missing=*/content_ != nullptr && request.index() > content_->index(), outbox);
}

absl::Status Replica::ApplyRecord(absl::Time now, ShardRecord record) {
  absl::Status status;
  if (record.version == Version() || record.gradient.format == proto::WIRE_FLOAT32) {
    status = content_->Apply(now, record, record.gradient.frame.As<float>());
  } else {
    Buffer gradient = environment_.spares.Take(content_->value_bytes());
    Decode(static_cast<WireFormat>(record.gradient.format), record.gradient.frame.bytes(),
           gradient.MutableAs<float>());
    status = content_->Apply(now, record, gradient.As<float>());
    environment_.spares.Retire(std::move(gradient));
  }
  if (!status.ok() || !record.digest || *record.digest == content_->Digest()) return status;
  return absl::DataLossError(
      absl::StrCat("after record ", record.index, " its content differs from the others'"));
}

void Replica::ReceivePiece(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::ReplicaPiece& piece = message.envelope.replica_piece();
  switch (JudgeChain(chain_.chain_epoch(), piece.chain().chain_epoch())) {
    case ChainVerdict::kDrop:
      return;
    case ChainVerdict::kRefuse:
      Refuse(message, outbox);
      return;
    case ChainVerdict::kAct:
      break;
  }
  if (message.from() != predecessor_ || !joining_) return;
  if (message.frames.empty()) {
    // A question. Pieces of other content than it is about are of no use any more.
    if (import_ != nullptr && import_->index() != piece.index()) import_.reset();
    Answer(/*missing=*/content_ == nullptr && Lacks(piece), outbox);
    return;
  }
  if (content_ != nullptr && piece.piece() == 0 && piece.index() > content_->index()) Drop();
  if (content_ != nullptr) {
    Answer(/*missing=*/false, outbox);
    return;
  }
  if (import_ == nullptr) {
    auto rules = RulesOf(*view_->FindTable(id_.table), *view_->FindShard(id_));
    if (!rules.ok()) return;
    auto content = ShardContent::Create(now, rules->shard, environment_.spares);
    if (!content.ok()) return;
    import_ = std::make_unique<ContentImport>(*std::move(content));
  }
  if (!CheckFrameChecksums(message).ok()) {
    ++environment_.counters.malformed;
  } else if (const absl::StatusOr<bool> complete = import_->Add(now, message); !complete.ok()) {
    DeclareUnfit(complete.status());
  } else if (*complete) {
    content_ = import_->Take();
    import_.reset();
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
  Answer(/*missing=*/content_ == nullptr && Lacks(piece), outbox);
}

bool Replica::Lacks(const proto::ReplicaPiece& piece) const {
  return import_ == nullptr || import_->next_piece() <= piece.piece();
}

void Replica::Wake(absl::Time now, Outbox& outbox) {
  if (!is_head() && now >= announce_at_) {
    announce_at_ = joining_ ? now + kAnnounceEvery : absl::InfiniteFuture();
    // Records of this chain were dropped as long as it was not known here.
    if (joining_ || content_ != nullptr) Answer(/*missing=*/!joining_, outbox);
  }
  if (link_ == nullptr || content_ == nullptr) return;
  link_->Wake(now, outbox);
  if (link_->TakeUnreachable(now)) {
    Report(proto::ReplicaReport::UNREACHABLE, link_->successor().node,
           absl::StrCat("no answer for ", absl::FormatDuration(ReplicaLink::kSilentMax)));
  }
  Settle(now);
}

absl::Time Replica::NextWake() const {
  const absl::Time link =
      link_ == nullptr || content_ == nullptr ? absl::InfiniteFuture() : link_->NextWake();
  return std::min(announce_at_, link);
}

std::string Replica::SuccessorName() const {
  return link_ == nullptr ? "" : view_->NameOf(link_->successor().node);
}

}  // namespace covey::server
