// SPDX-License-Identifier: Apache-2.0
#include "worker/group/group_members.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/cluster/limits.h"
#include "common/net/sender.h"

namespace covey::worker {

void GroupMembers::Replace(std::vector<NodeId> nodes) {
  nodes_ = std::move(nodes);
  away_floor_ = away_.DeadlineFloor(nodes_);
}

void GroupMembers::SetAway(absl::Time now, const std::vector<AwayWorker>& away) {
  away_.Set(now, away);
  away_floor_ = away_.DeadlineFloor(nodes_);
}

absl::Time GroupMembers::DeadlineFloor() const {
  const bool holds = away_floor_ == absl::InfinitePast() || HasDeparted();
  return holds ? absl::InfinitePast() : away_floor_;
}

void GroupMembers::Set(std::vector<NodeId> nodes) {
  Replace(std::move(nodes));
  rank_ =
      static_cast<uint32_t>(std::find(nodes_.begin(), nodes_.end(), plan_.self()) - nodes_.begin());
  COVEY_CHECK(rank_ < size());
}

std::vector<TopologyPath> GroupMembers::LabeledPaths() const {
  std::vector<TopologyPath> paths;
  for (const NodeId id : nodes_) {
    const proto::Node* node = view().FindNode(id);
    paths.push_back(ParseTopologyPath(node == nullptr ? "" : node->labels()));
  }
  return paths;
}

std::string GroupMembers::NothingFrom(std::vector<uint32_t> ranks) const {
  constexpr size_t kNamesMax = 3;
  const size_t more = ranks.size() - std::min(ranks.size(), kNamesMax);
  ranks.resize(ranks.size() - more);
  const auto name = [this](std::string* out, uint32_t rank) {
    const proto::Node* node = view().FindNode(nodes_[rank]);
    const bool left = node != nullptr && node->state() == proto::Node::LEFT;
    absl::StrAppend(out, NameOf(rank), left ? ", which has left" : "");
    const std::string* const away = left ? nullptr : away_.ReasonOf(nodes_[rank]);
    if (away != nullptr) absl::StrAppend(out, ", which was away (", *away, ")");
  };
  return absl::StrCat("nothing from ", absl::StrJoin(ranks, " and ", name),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

bool GroupMembers::HasDeparted() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [this](NodeId id) {
    const proto::Node* node = view().FindNode(id);
    return node != nullptr && node->state() == proto::Node::LEFT;
  });
}

bool GroupMembers::IsFrom(const Message& message, uint32_t rank) const {
  if (rank >= size()) return false;
  return message.from() == AddressOf(rank) && covey::SenderOf(message, view()) != nullptr;
}

std::optional<uint32_t> GroupMembers::SenderOf(const Message& message) const {
  for (uint32_t rank = 0; rank < size(); ++rank) {
    if (rank != rank_ && IsFrom(message, rank)) return rank;
  }
  return std::nullopt;
}

uint32_t GroupMembers::NewestAttempt(const std::deque<Message>& messages,
                                     const GroupRound& round) const {
  uint32_t newest = 0;
  for (const Message& message : messages) {
    const std::optional<GroupSender> sender = worker::SenderOf(message);
    if (!sender || !sender->rank || !IsFrom(message, *sender->rank)) continue;
    const GroupRound& spoken = sender->round;
    if (spoken.group != round.group || spoken.generation != round.generation) continue;
    if (spoken.attempt <= kGroupAttemptsMax) newest = std::max(newest, spoken.attempt);
  }
  return newest;
}

void GroupMembers::EnsureRoute(uint32_t rank, Outbox& outbox) {
  const std::string endpoint = view().EndpointOf(AddressOf(rank));
  std::string& route = routes_[nodes_[rank]];
  if (route == endpoint) return;
  route = endpoint;
  outbox.Route(AddressOf(rank), endpoint);
}

void GroupMembers::SetReceiver(uint32_t rank, Message& message, Outbox& outbox) {
  message.set_to(AddressOf(rank));
  EnsureRoute(rank, outbox);
}

void GroupMembers::RefreshRoutes(Outbox& outbox) {
  for (auto route = routes_.begin(); route != routes_.end();) {
    const NodeId node = (route++)->first;
    if (!view().IsAlive(node)) Disconnect(node, outbox);
  }
  for (uint32_t rank = 0; rank < size(); ++rank) {
    if (routes_.contains(nodes_[rank])) EnsureRoute(rank, outbox);
  }
}

void GroupMembers::Disconnect(NodeId node, Outbox& outbox) {
  outbox.Route({node, 0}, "");
  routes_.erase(node);
}

void GroupMembers::TellEnd(const GroupRound& round, RoundEnd end, absl::string_view reason,
                           Outbox& outbox) {
  for (uint32_t rank = 0; rank < size(); ++rank) {
    if (rank == rank_) continue;
    Message message = MakeAbort(round, end, reason);
    // Members that are told of a failure get a new connection: theirs may have been dropped.
    if (end == RoundEnd::kFailed) routes_.erase(nodes_[rank]);
    SetReceiver(rank, message, outbox);
    outbox.Send(std::move(message));
  }
}

}  // namespace covey::worker
