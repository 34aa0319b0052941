// SPDX-License-Identifier: Apache-2.0
#include "server/replication/replica.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/check.h"
#include "common/base/log.h"

namespace covey::server {
namespace {

// How often a joining replica tells its predecessor what it holds.
constexpr absl::Duration kAnnounceEvery = absl::Milliseconds(300);
// A digest is one pass over the content; once per so many records or bytes it costs little.
constexpr uint64_t kRecordsPerDigest = 64;
constexpr uint64_t kBytesPerDigest = 64 << 20;
// A joining successor that is silent for longer does not make pushes wait.
constexpr absl::Duration kFillingMayHoldUp = absl::Milliseconds(200);

}  // namespace

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
  const bool was_head = chain_.generation() == generation_ && is_head();
  position_ = *ClusterView::PositionInChain(shard, self);
  if (!was_head) head_since_ = Epoch(shard.chain_epoch());
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
  FollowRole(shard.chain(position_).joining(), overtaken);
  if (position_ + 1 < shard.chain_size()) {
    LinkTo(now, shard.chain(position_ + 1));
  } else {
    link_.reset();
  }
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
      return;
    case ReplicaState::kUnfit:
      // Reports of an older chain count no longer.
      Report(proto::ReplicaReport::UNFIT, self_.node, "it has dropped its content");
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
      if (!overtaken || content_->index() <= durable_) return;
      RejectContent(absl::AbortedError(absl::StrCat(
                        "it holds record ", content_->index(), ", of which only ", durable_,
                        " are known to be held by the servers that are in front now")),
                    ReplicaState::kUnfit);
      return;
  }
}

void Replica::LinkTo(absl::Time now, const proto::Replica& successor) {
  const Address address{NodeId(successor.node()), successor.loop()};
  if (link_ == nullptr || link_->successor() != address) {
    link_ = std::make_unique<ReplicaLink>(
        now, successor, ReplicaLink::Records{.first = log_.first(), .newest = log_.next() - 1},
        ReplicaLink::Counters{.records = environment_.counters.replicated,
                              .content_bytes = environment_.counters.content_bytes});
  }
  link_->SetChain(now, chain_, successor.joining());
}

void Replica::Enter(ReplicaState next) {
  COVEY_CHECK(IsLegalTransition(kReplicaTransitions, state_, next));
  state_ = next;
  COVEY_CHECK(HasContent(state_) == (content_ != nullptr));
}

void Replica::Drop() {
  content_.reset();
  import_.reset();
  log_.Reset(1);
  durable_ = 0;
}

void Replica::RejectContent(const absl::Status& why, ReplicaState next) {
  ++environment_.counters.unfit_replicas;
  LogWarning(
      "replica_unfit",
      {{"table", id_.table.value()}, {"shard", id_.index.value()}, {"reason", why.message()}});
  Drop();
  Enter(next);
  if (next == ReplicaState::kUnfit) {
    Report(proto::ReplicaReport::UNFIT, self_.node, std::string(why.message()));
  }
}

absl::Status Replica::Open(absl::Time now) {
  if (!may_open()) return absl::OkStatus();
  auto rules = RulesOf(*view_->FindTable(id_.table), *view_->FindShard(id_));
  if (!rules.ok()) return rules.status();
  auto content = ShardContent::Create(now, rules->shard, environment_.spares);
  if (!content.ok()) {
    return Annotate(absl::StrCat("table=", view_->FindTable(id_.table)->spec().name()),
                    content.status());
  }
  content_ = *std::move(content);
  Enter(ReplicaState::kJoined);
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

void Replica::SetEarlyAcksPending(absl::Time now, bool pending, Outbox& outbox) {
  if (early_acks_pending_ == pending) return;
  early_acks_pending_ = pending;
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
  const SuccessorState& successor = link_->state();
  if (!successor.is_refused()) {
    const uint64_t held =
        successor.is_required() ? std::min(content_->index(), link_->durable()) : content_->index();
    durable_ = std::max(durable_, held);
  }
  if (log_.IsFull() && !successor.is_required() &&
      now - link_->silent_since() > kFillingMayHoldUp) {
    link_->GiveUpFilling();
  }
  log_.TrimBelow(std::min(durable_ + 1, link_->NeedsFrom()));
  if (successor.is_ready() && ready_reported_at_ != Epoch(chain_epoch())) {
    ready_reported_at_ = Epoch(chain_epoch());
    Report(proto::ReplicaReport::READY, link_->successor().node, "");
  }
}

void Replica::Report(proto::ReplicaReport::Kind kind, NodeId node, const std::string& reason) {
  proto::ReplicaReport& report = reports_.emplace_back();
  report.set_table(chain_.table());
  report.set_shard(chain_.shard());
  report.set_generation(chain_.generation());
  report.set_chain_epoch(chain_.chain_epoch());
  report.set_node(node.value());
  report.set_kind(kind);
  report.set_reason(reason);
}

void Replica::Wake(absl::Time now, Outbox& outbox) {
  if (!is_head() && now >= announce_at_) {
    const bool joining = IsJoining(state_);
    announce_at_ = joining ? now + kAnnounceEvery : absl::InfiniteFuture();
    // Records of this chain were dropped while this server did not know it.
    if (joining || content_ != nullptr) Acknowledge(/*missing=*/!joining, outbox);
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
