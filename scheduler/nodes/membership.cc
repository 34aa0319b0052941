#include "scheduler/nodes/membership.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "scheduler/nodes/registration.h"
#include "scheduler/state/nodes.h"

namespace covey::scheduler {
namespace {

// Departed clients stay in the view for error messages, but not all that ever were.
constexpr int kDepartedClientsKept = 64;
// Who waits for the answer to its registration says nothing, however long the disk takes.
constexpr absl::Duration kUntilAnswered = absl::Hours(24);

}  // namespace

void Membership::Start(absl::Time now) {
  for (const proto::Node& node : state_.view().nodes()) {
    if (node.state() != proto::Node::ALIVE) continue;
    health_.emplace(NodeId(node.id()), NewHealth(now, config_.restart_grace));
  }
  groups_.NoteMissing();
}

Membership::Health Membership::NewHealth(absl::Time now, absl::Duration grace) const {
  return {.detector = FailureDetector(
              {.beat = config_.heartbeat, .silence_min = config_.silence_min}, now + grace),
          .lease_end = LeaseEnd(now)};
}

absl::StatusOr<Membership::Registration> Membership::Register(absl::Time now,
                                                              const proto::RegisterRequest& request,
                                                              Incarnation incarnation) {
  COVEY_RETURN_IF_ERROR(CheckRegistration(config_, request));
  if (incarnation == Incarnation()) {
    return absl::InvalidArgumentError("register: the incarnation is 0; draw a random one");
  }
  proto::ClusterView& view = *state_.mutable_view();
  for (const proto::Node& node : view.nodes()) {
    if (node.incarnation() != incarnation.value()) continue;
    COVEY_RETURN_IF_ERROR(CheckSender(NodeId(node.id()), incarnation));
    return Registration{.node = NodeId(node.id()), .rank = node.rank()};
  }
  COVEY_ASSIGN_OR_RETURN(const uint32_t rank, ChooseRank(config_, view, request));
  const proto::Node* replaced = FindHolder(view, request.role(), rank);
  const NodeId replaces(replaced == nullptr ? 0 : replaced->id());
  ForgetDepartedClients();
  if (view.nodes_size() >= static_cast<int>(kNodesMax)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("register: the job has had ", view.nodes_size(), " nodes, the most it can"));
  }

  view.set_epoch(view.epoch() + 1);
  proto::Node& node = *view.add_nodes();
  node.set_id(state_.next_node());
  state_.set_next_node(state_.next_node() + 1);
  node.set_incarnation(incarnation.value());
  node.set_role(request.role());
  node.set_state(proto::Node::ALIVE);
  node.set_name(NodeName(request.role(), rank));
  node.set_labels(request.labels());
  *node.mutable_endpoints() = request.endpoints();
  node.set_rank(rank);
  node.set_process_id(request.process_id());
  node.set_host(request.host());
  health_.emplace(NodeId(node.id()), NewHealth(now, kUntilAnswered));

  std::string decision = absl::StrCat(Describe(node), " registered");
  if (replaces != NodeId()) absl::StrAppend(&decision, " in place of node ", replaces.value());
  const std::string placed = groups_.Joined(now);
  if (!placed.empty()) absl::StrAppend(&decision, "; ", placed);
  return Registration{.node = NodeId(node.id()),
                      .rank = rank,
                      .replaces = replaces,
                      .decision = std::move(decision)};
}

absl::Status Membership::CheckSender(NodeId id, Incarnation incarnation) const {
  const proto::Node* node = FindNode(state_.view(), id);
  if (node == nullptr) {
    return absl::AbortedError(absl::StrCat("node ", id.value(), " is not in job '",
                                           config_.job_name, "' at epoch ", state_.view().epoch(),
                                           ": it belongs to another run; restart it"));
  }
  if (node->incarnation() != incarnation.value()) {
    return absl::AbortedError(absl::StrCat(
        "node ", id.value(), " is another incarnation: ", Describe(*node), "; this one must stop"));
  }
  if (node->state() == proto::Node::ALIVE) return absl::OkStatus();
  const proto::Node* holder = FindHolder(state_.view(), node->role(), node->rank());
  return absl::AbortedError(absl::StrCat(
      Describe(*node), " ", node->departure(),
      holder == node ? "" : absl::StrCat("; replaced by ", Describe(*holder)),
      node->state() == proto::Node::DEAD ? "; restart the process to join as a new node" : ""));
}

bool Membership::HasLeft(NodeId id, Incarnation incarnation) const {
  const proto::Node* node = FindNode(state_.view(), id);
  return node != nullptr && node->incarnation() == incarnation.value() &&
         node->state() == proto::Node::LEFT;
}

void Membership::Answered(absl::Time now, NodeId node) {
  const auto at = health_.find(node);
  if (at != health_.end()) at->second = NewHealth(now, absl::ZeroDuration());
}

void Membership::Heartbeat(absl::Time now, NodeId node, const proto::HeartbeatRequest& request) {
  const auto at = health_.find(node);
  COVEY_CHECK(at != health_.end());
  Health& health = at->second;
  health.detector.Beat(now);
  health.lease_end = LeaseEnd(now);
  health.is_probed = false;
  if (request.has_progress()) health.progress = request.progress();
  if (FindNode(state_.view(), node)->role() == proto::WORKER) {
    groups_.Hear(node, health.progress.step());
  }
  if (request.has_load()) health.load = request.load();
}

Membership::Decision Membership::Leave(absl::Time now, NodeId id, const std::string& reason) {
  proto::Node* node = FindNode(*state_.mutable_view(), id);
  COVEY_CHECK(node != nullptr && node->state() == proto::Node::ALIVE);
  const std::string why = reason.empty() ? "" : absl::StrCat(": ", reason.substr(0, kNameBytesMax));
  const std::string placed = Depart(now, *node, proto::Node::LEFT,
                                    absl::StrCat("left at epoch ", state_.view().epoch() + 1, why));
  return absl::StrCat(Describe(*node), " left", why, placed.empty() ? "" : "; ", placed);
}

absl::Status Membership::CheckGoodbye(NodeId id, Epoch known) const {
  for (const proto::Table& table : state_.view().tables()) {
    for (const proto::Shard& shard : table.shards()) {
      if (shard.chain_epoch() <= known.value()) continue;
      for (const proto::Replica& replica : shard.chain()) {
        if (NodeId(replica.node()) != id) continue;
        return absl::FailedPreconditionError(absl::StrCat(
            "leave: since epoch ", shard.chain_epoch(), " the node is in the chain of ", "table ",
            table.spec().name(), " shard ", shard.index(), ", and it knows of epoch ",
            known.value(), "; follow the newer view"));
      }
    }
  }
  return absl::OkStatus();
}

std::vector<Membership::Death> Membership::FindDead(absl::Time now) {
  std::vector<Death> deaths;
  for (const auto& [id, health] : health_) {
    if (now < health.detector.DeadAt()) continue;
    deaths.push_back(
        {.node = id,
         .decision = absl::StrFormat("silent for %.1f s, suspicion %.1f",
                                     absl::ToDoubleSeconds(health.detector.Silence(now)),
                                     health.detector.Suspicion(now)),
         .lease_end = health.lease_end});
  }
  for (Death& death : deaths) {
    death.decision = Declare(now, death.node, death.decision).decision;
  }
  return deaths;
}

Membership::Death Membership::Declare(absl::Time now, NodeId id, const std::string& evidence) {
  proto::Node* node = FindNode(*state_.mutable_view(), id);
  const std::string placed =
      Depart(now, *node, proto::Node::DEAD,
             absl::StrCat("declared dead at epoch ", state_.view().epoch() + 1, ": ", evidence));
  return {.node = id,
          .decision = absl::StrCat(Describe(*node), " dead: ", evidence, placed.empty() ? "" : "; ",
                                   placed)};
}

std::optional<proto::ProbeRequest> Membership::ConnectionLost(const proto::ConnectionLost& lost) {
  const proto::Node* node = FindNode(state_.view(), NodeId(lost.node()));
  const auto health = health_.find(NodeId(lost.node()));
  if (node == nullptr || health == health_.end() || node->incarnation() != lost.incarnation() ||
      health->second.is_probed) {
    return std::nullopt;
  }
  const auto endpoint = std::find_if(node->endpoints().begin(), node->endpoints().end(),
                                     [](const std::string& e) { return !e.empty(); });
  if (endpoint == node->endpoints().end()) return std::nullopt;
  health->second.is_probed = true;
  proto::ProbeRequest probe;
  probe.set_node(lost.node());
  probe.set_incarnation(lost.incarnation());
  probe.set_endpoint(*endpoint);
  return probe;
}

std::optional<Membership::Death> Membership::TakeProbeReply(absl::Time now,
                                                            const proto::ProbeReply& reply) {
  const proto::Node* node = FindNode(state_.view(), NodeId(reply.node()));
  const auto health = health_.find(NodeId(reply.node()));
  if (node == nullptr || health == health_.end() || node->incarnation() != reply.incarnation() ||
      !health->second.is_probed) {
    return std::nullopt;
  }
  health->second.is_probed = false;
  if (reply.result() != proto::ProbeReply::REFUSED) return std::nullopt;
  return Declare(now, NodeId(node->id()), "connection lost and reconnect refused");
}

std::string Membership::Depart(absl::Time now, proto::Node& node, proto::Node::State state,
                               std::string reason) {
  proto::ClusterView& view = *state_.mutable_view();
  view.set_epoch(view.epoch() + 1);
  node.set_state(state);
  node.set_departure(std::move(reason));
  node.clear_standby();
  node.clear_draining();
  health_.erase(NodeId(node.id()));
  groups_.NoteMissing();
  return groups_.Departed(now, node);
}

void Membership::ForgetDepartedClients() {
  auto& nodes = *state_.mutable_view()->mutable_nodes();
  const auto is_departed_client = [](const proto::Node& node) {
    return node.role() == proto::CLIENT && node.state() != proto::Node::ALIVE;
  };
  auto excess =
      std::count_if(nodes.begin(), nodes.end(), is_departed_client) - kDepartedClientsKept;
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(),
                             [&](const proto::Node& node) {
                               return is_departed_client(node) && excess-- > 0;
                             }),
              nodes.end());
}

absl::Time Membership::NextDeath() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [id, health] : health_) next = std::min(next, health.detector.DeadAt());
  return next;
}

void Membership::Excuse(absl::Duration pause) {
  for (auto& [id, health] : health_) health.detector.Excuse(pause);
}

absl::Status Membership::CheckServers() const {
  const std::string missing = MissingNodes(config_, state_.view(), Expected::kServers);
  if (missing.empty()) return absl::OkStatus();
  // Once all have been here, tables need not wait for those that have gone.
  const proto::ClusterView& view = state_.view();
  bool all_came = true;
  for (uint32_t rank = 0; rank < config_.servers; ++rank) {
    all_came = all_came && FindHolder(view, proto::SERVER, rank) != nullptr;
  }
  if (all_came && std::any_of(view.nodes().begin(), view.nodes().end(), [](const auto& node) {
        return node.role() == proto::SERVER && node.state() == proto::Node::ALIVE &&
               !node.draining();
      })) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat("waiting for ", missing));
}

void Membership::FillStatus(absl::Time now, proto::StatusReply& reply) const {
  for (const proto::Node& node : state_.view().nodes()) {
    proto::NodeStatus& status = *reply.add_nodes();
    status.set_node(node.id());
    const auto at = health_.find(NodeId(node.id()));
    if (at == health_.end()) continue;
    const Health& health = at->second;
    status.set_silent_ms(
        static_cast<uint64_t>(absl::ToInt64Milliseconds(health.detector.Silence(now))));
    *status.mutable_progress() = health.progress;
    *status.mutable_load() = health.load;
  }
}

}  // namespace covey::scheduler
