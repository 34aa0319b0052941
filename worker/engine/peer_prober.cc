// SPDX-License-Identifier: Apache-2.0
#include "worker/engine/peer_prober.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/cluster/limits.h"
#include "common/net/sender.h"

namespace covey::worker {
namespace {

using Stage = StagedProber::Stage;
constexpr std::array kStages = {Stage{},
                                Stage{},
                                Stage{},
                                Stage{},
                                Stage{.bytes = PeerProber::kSmallProbeBytes},
                                Stage{.bytes = PeerProber::kLargeProbeBytes}};
static_assert(kStages.size() == PeerProber::kRoundTrips + 2);
static_assert(PeerProber::kLargeProbeBytes <= kFrameBytesMax);
constexpr StagedProber::Options kOptions = {.stages = kStages,
                                            .contact_every = PeerProber::kContactEvery,
                                            .contact_max = PeerProber::kContactMax,
                                            .patience = PeerProber::kPatience,
                                            .slow = absl::Milliseconds(5)};

// Where a worker's only loop is.
Address LoopOf(NodeId worker) { return {worker, 0}; }

proto::ProbedLink LinkTo(NodeId node, size_t peer, const std::vector<StagedProber::Trip>& trips) {
  proto::ProbedLink link;
  link.set_node(node.value());
  absl::Duration shortest = absl::InfiniteDuration();
  for (const StagedProber::Trip& trip : trips) {
    if (trip.peer != peer) continue;
    if (trip.stage.bytes == 0) {
      if (!trip.is_late) shortest = std::min(shortest, trip.took);
    } else if (trip.took > shortest) {
      // The largest probe comes last. One that is late is at least this slow.
      link.set_bytes_per_second(static_cast<double>(trip.stage.bytes) /
                                absl::ToDoubleSeconds(trip.took - shortest));
    }
  }
  if (shortest < absl::InfiniteDuration()) {
    link.set_round_trip_seconds(absl::ToDoubleSeconds(shortest));
  }
  return link;
}

}  // namespace

void PeerProber::SetOrder(absl::Time now, const proto::ProbeOrder& order, const ClusterView& view,
                          Outbox& outbox) {
  if (order.order() == order_) return;
  order_ = order.order();
  peers_.clear();
  for (const uint64_t peer : order.peers()) {
    if (peers_.size() < kProbedPeersMax) peers_.push_back(NodeId(peer));
  }
  under_way_ = order_ != 0;
  ends_ = now + kOrderMax;
  prober_.Begin(now, peers_.size(), kOptions);
  SendProbes(view, outbox);
}

void PeerProber::SetView(const ClusterView& view, Outbox& outbox) {
  std::erase_if(routed_, [&](NodeId peer) {
    if (view.IsAlive(peer)) return false;
    outbox.Route(LoopOf(peer), "");
    return true;
  });
}

void PeerProber::SendProbes(const ClusterView& view, Outbox& outbox) {
  for (const StagedProber::Probe& probe : prober_.TakeProbes()) {
    const NodeId peer = peers_[probe.peer];
    // A peer that the view does not list yet may be there at the next try of first contact.
    const std::string endpoint = view.IsAlive(peer) ? view.EndpointOf(LoopOf(peer)) : "";
    if (endpoint.empty()) continue;
    outbox.Route(LoopOf(peer), endpoint);
    routed_.insert(peer);
    Message message;
    message.set_to(LoopOf(peer));
    message.envelope.mutable_peer_probe()->set_number(probe.number);
    if (probe.bytes > 0) message.frames.push_back(ProbeFrame(probe.bytes));
    outbox.Send(std::move(message));
  }
}

bool PeerProber::Receive(absl::Time now, const Message& message, const ClusterView& view,
                         Outbox& outbox) {
  if (!message.envelope.has_peer_probe()) return false;
  const proto::Node* const sender = SenderOf(message, view);
  if (sender == nullptr || sender->role() != proto::WORKER ||
      sender->state() != proto::Node::ALIVE) {
    return true;
  }
  const proto::PeerProbe& probe = message.envelope.peer_probe();
  if (!probe.reply()) {
    Answer(now, message, outbox);
    return true;
  }
  const auto peer = std::find(peers_.begin(), peers_.end(), NodeId(sender->id()));
  prober_.Echo(now, static_cast<size_t>(peer - peers_.begin()), probe.number());
  SendProbes(view, outbox);
  return true;
}

void PeerProber::Answer(absl::Time now, const Message& probe, Outbox& outbox) {
  if (now >= answers_until_) {
    answers_until_ = now + absl::Seconds(1);
    answers_ = 0;
  }
  if (answers_ == kProbesAnsweredPerSecondMax) return;
  ++answers_;
  Message reply = MakeReply(probe);
  reply.envelope.mutable_peer_probe()->set_number(probe.envelope.peer_probe().number());
  reply.envelope.mutable_peer_probe()->set_reply(true);
  outbox.Send(std::move(reply));
}

void PeerProber::Wake(absl::Time now, const ClusterView& view, Outbox& outbox) {
  if (!under_way_) return;
  if (now >= ends_) return prober_.End();
  prober_.Wake(now);
  SendProbes(view, outbox);
}

absl::Time PeerProber::NextWake() const {
  return prober_.done() ? absl::InfiniteFuture() : std::min(prober_.NextWake(), ends_);
}

std::optional<proto::ProbeReport> PeerProber::TakeReport() {
  if (!under_way_ || !prober_.done()) return std::nullopt;
  under_way_ = false;
  proto::ProbeReport report;
  report.set_order(order_);
  for (size_t peer = 0; peer < peers_.size(); ++peer) {
    *report.add_links() = LinkTo(peers_[peer], peer, prober_.trips());
  }
  return report;
}

}  // namespace covey::worker
