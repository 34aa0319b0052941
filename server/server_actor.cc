// SPDX-License-Identifier: Apache-2.0
#include "server/server_actor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/log.h"
#include "common/cluster/own_pause.h"
#include "common/net/own_process.h"
#include "server/server_load.h"

namespace covey::server {
namespace {

Member::Options AsServer(Member::Options options) {
  options.role = proto::SERVER;
  return options;
}

// Whether no other server has the whole content of some shard of the node.
bool HasOnlyCopy(const proto::ClusterView& view, NodeId node) {
  const auto is_only_copy = [node](const proto::Shard& shard) {
    const auto full = std::count_if(shard.chain().begin(), shard.chain().end(),
                                    [](const proto::Replica& r) { return !r.joining(); });
    return full == 1 &&
           std::any_of(shard.chain().begin(), shard.chain().end(), [node](const proto::Replica& r) {
             return !r.joining() && NodeId(r.node()) == node;
           });
  };
  return std::any_of(view.tables().begin(), view.tables().end(), [&](const proto::Table& table) {
    return std::any_of(table.shards().begin(), table.shards().end(), is_only_copy);
  });
}

}  // namespace

ServerActor::ServerActor(const Options& options)
    : member_(AsServer(options.member), next_request_id_),
      reports_(next_request_id_),
      snapshots_(next_request_id_),
      loads_(std::max<size_t>(1, options.member.endpoints.size())),
      watch_(static_cast<uint32_t>(loads_.size() - 1)),
      drain_(member_, next_request_id_, static_cast<uint32_t>(loads_.size() - 1)) {
  member_.OnChange([this](absl::Time now, Outbox& outbox) { MembershipChanged(now, outbox); });
}

void ServerActor::ForwardLease(Outbox& outbox) {
  if (drain_.has_ended_lease() || member_.lease_until() == forwarded_lease_) return;
  forwarded_lease_ = member_.lease_until();
  for (uint32_t loop = 1; loop < loads_.size(); ++loop) {
    Message message;
    message.set_to({member_.node(), loop});
    message.envelope.mutable_lease_notice()->set_until_ns(absl::ToUnixNanos(forwarded_lease_));
    outbox.Send(std::move(message));
  }
}

void ServerActor::MembershipChanged(absl::Time now, Outbox& outbox) {
  ForwardLease(outbox);  // before the view that it belongs to
  if (on_change_) on_change_(now, outbox);
  if (member_.view()->epoch() <= forwarded_) return;
  forwarded_ = member_.view()->epoch();
  for (uint32_t loop = 1; loop < loads_.size(); ++loop) {
    Message message;
    message.set_to({member_.node(), loop});
    *message.envelope.mutable_watch_view_reply()->mutable_view() = member_.view()->proto();
    outbox.Send(std::move(message));
  }
  watch_.Start(now);
  reports_.FollowView(*member_.view());
  snapshots_.FollowView(*member_.view());
  drain_.FollowView(now, outbox);
  if (!hang_.ok()) FollowHang(now, outbox);
}

void ServerActor::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  if (member_.Receive(now, message, outbox)) return ForwardLease(outbox);
  if (drain_.Receive(now, message, outbox)) return;
  if (message.envelope.has_snapshot_report_reply()) return snapshots_.OnReply(message);
  const uint32_t loop = message.envelope.from_loop();
  if (!IsFromOwnProcess(message) || loop == 0 || loop >= loads_.size()) return;
  if (message.envelope.has_heartbeat_request()) TakeLoad(now, message);
  if (message.envelope.has_replica_report_request()) {
    reports_.Add(now, message.envelope.replica_report_request());
    reports_.FollowView(*member_.view());
    reports_.Wake(now, outbox);
  }
  if (message.envelope.has_snapshot_report_request()) {
    snapshots_.Add(now, message.envelope.snapshot_report_request());
    snapshots_.FollowView(*member_.view());
    snapshots_.Wake(now, outbox);
  }
}

void ServerActor::TakeLoad(absl::Time now, const Message& message) {
  watch_.Hear(now, message.envelope.from_loop());
  loads_[message.envelope.from_loop()] = message.envelope.heartbeat_request().load();
  member_.load() = load();
}

proto::ServerLoad ServerActor::load() const {
  ServerLoadSum sum;
  for (const proto::ServerLoad& load : loads_) sum.Add(load);
  proto::ServerLoad load = sum.Take();
  load.set_table_bytes_max(table_bytes_max_);
  return load;
}

void ServerActor::SetTableBytesMax(uint64_t bytes_max) {
  table_bytes_max_ = bytes_max;
  member_.load() = load();
}

void ServerActor::CheckLoops(absl::Time now, Outbox& outbox) {
  const std::optional<DataLoopWatch::SilentLoop> longest = watch_.Longest(now);
  if (!hang_.ok() || !longest || longest->silence < DataLoopWatch::kSilentMax) return;
  const std::string loop = absl::StrFormat("data-%d", longest->loop);
  const double seconds = absl::ToDoubleSeconds(longest->silence);
  LogError("loop_hangs", {{"loop", loop}, {"silent_seconds", seconds}});
  hang_ =
      absl::InternalError(absl::StrFormat("its loop %s hangs: silent for %.1f s", loop, seconds));
  FollowHang(now, outbox);
}

void ServerActor::FollowHang(absl::Time now, Outbox& outbox) {
  if (HasOnlyCopy(member_.view()->proto(), member_.node())) {
    member_.Stay();
    goodbye_ = Goodbye::kForbidden;
    if (on_change_) on_change_(now, outbox);
  } else if (goodbye_ == Goodbye::kNone) {
    goodbye_ = Goodbye::kSaid;
    member_.Leave(now, std::string(hang_.message()), outbox);
  }
}

bool ServerActor::is_over() const {
  return member_.state() == Member::State::kLeft || member_.state() == Member::State::kFailed ||
         goodbye_ == Goodbye::kForbidden;
}

void ServerActor::Wake(absl::Time now, Outbox& outbox) {
  watch_.DiscountPause(now, OwnPause(NextWake(), now));
  member_.Wake(now, outbox);
  if (member_.state() == Member::State::kMember) {
    reports_.Wake(now, outbox);
    snapshots_.Wake(now, outbox);
    CheckLoops(now, outbox);
  }
  drain_.Wake(now, outbox);
}

absl::Time ServerActor::NextWake() const {
  absl::Time next = std::min(member_.NextWake(), drain_.NextWake());
  if (member_.state() == Member::State::kMember) {
    next = std::min({next, reports_.NextWake(), snapshots_.NextWake()});
    if (hang_.ok()) next = std::min(next, watch_.NextDeadline());
  }
  return next;
}

void ServerActor::Leave(absl::Time now, std::string reason, absl::Time deadline, Outbox& outbox) {
  drain_.Begin(now, std::move(reason), deadline, outbox);
}

}  // namespace covey::server
