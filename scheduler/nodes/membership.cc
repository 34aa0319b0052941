// SPDX-License-Identifier: Apache-2.0
#include "scheduler/nodes/membership.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"
#include "common/base/planted_bug.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/runtime/exposure.h"
#include "scheduler/nodes/departed_nodes.h"
#include "scheduler/nodes/registration.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

// A node that waits for the reply to its registration sends no heartbeats, even if the disk is
// slow.
constexpr absl::Duration kUntilAnswered = absl::Hours(24);
// A node that was refused asks again every few seconds, if it lives.
constexpr absl::Duration kUntilAskedAgain = absl::Seconds(10);

// Of all nodes of the view together: 27,000 of 300 bytes each. The rest of what a control message
// may have is for groups, tables and their shards.
constexpr size_t kNodesBytesMax = kControlEnvelopeBytesMax / 2;

// The first one that listens; empty = none does.
std::string ProbedEndpoint(const proto::Node& node) {
  const auto endpoint = std::find_if(node.endpoints().begin(), node.endpoints().end(),
                                     [](const std::string& e) { return !e.empty(); });
  return endpoint == node.endpoints().end() ? "" : *endpoint;
}

// Whether the way to the endpoint leads through no network, in which a proxy or a firewall may
// refuse a connection to a process that lives.
bool StaysInMachine(absl::string_view endpoint) {
  return !absl::ConsumePrefix(&endpoint, "tcp://") ||
         IsLoopback(endpoint.substr(0, endpoint.rfind(':')));
}

}  // namespace

absl::Time Membership::Start(absl::Time now) {
  const Health unheard = NewHealth(now, options_.restart_grace);
  for (const proto::Node& node : state_.view().nodes()) {
    CountBytes(node);
    if (node.state() != proto::Node::ALIVE) continue;
    Expect(health_.emplace(NodeId(node.id()), unheard).first->second);
  }
  return unheard.detector.DeadAt();
}

Membership::Health Membership::NewHealth(absl::Time now, absl::Duration grace) const {
  return {.detector = FailureDetector(
              {.beat = options_.heartbeat, .silence_min = options_.silence_min}, now + grace),
          .lease_end = LeaseEnd(now)};
}

absl::StatusOr<Membership::Registration> Membership::Register(absl::Time now,
                                                              const proto::RegisterRequest& request,
                                                              Incarnation incarnation) {
  COVEY_RETURN_IF_ERROR(CheckRegistration(state_.job(), request));
  if (incarnation == Incarnation()) {
    return absl::InvalidArgumentError("register: the incarnation is 0; draw a random one");
  }
  const proto::ClusterView& view = state_.view();
  for (const proto::Node& node : view.nodes()) {
    if (node.incarnation() != incarnation.value()) continue;
    COVEY_RETURN_IF_ERROR(CheckSender(NodeId(node.id()), incarnation));
    return Registration{.node = NodeId(node.id()), .rank = node.rank()};
  }
  COVEY_ASSIGN_OR_RETURN(
      const uint32_t rank,
      ChooseRank(state_.job(), view, request, options_.silence_min + options_.heartbeat));
  const std::vector<NodeId> forgettable = ForgettableNodes(view);
  const size_t kept = view.nodes_size() - forgettable.size();
  if (kept >= kNodesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("register: the job has ", kept, " nodes, the most it can"));
  }
  COVEY_RETURN_IF_ERROR(CheckBytes(request, forgettable));
  const proto::Node* replaced = FindHolder(view, request.role(), rank);
  const NodeId replaces(replaced == nullptr ? 0 : replaced->id());

  Transaction change(state_);
  Forget(forgettable, change);
  const proto::Node& node = AddNode(request, incarnation, rank, change);
  CountBytes(node);
  change.Add(
      NodeRegistered{.description = Describe(node), .role = node.role(), .replaces = replaces});
  groups_.OnRegistered(now, change);
  change.Commit();
  Health& health = health_.emplace(NodeId(node.id()), NewHealth(now, kUntilAnswered)).first->second;
  Expect(health);
  if (request.has_load()) health.load = request.load();
  return Registration{
      .node = NodeId(node.id()), .rank = rank, .replaces = replaces, .is_new = true};
}

const proto::Node& Membership::AddNode(const proto::RegisterRequest& request,
                                       Incarnation incarnation, uint32_t rank,
                                       Transaction& change) const {
  proto::Node& node = *change.EditView().add_nodes();
  node.set_id(change.TakeNodeId().value());
  node.set_incarnation(incarnation.value());
  node.set_role(request.role());
  node.set_state(proto::Node::ALIVE);
  node.set_name(NodeName(request.role(), rank));
  node.set_labels(request.labels());
  *node.mutable_endpoints() = request.endpoints();
  node.set_rank(rank);
  node.set_process_id(request.process_id());
  node.set_host(request.host());
  node.set_data_key(request.data_key());
  node.set_version(request.version());
  return node;
}

absl::Status Membership::CheckSender(NodeId id, Incarnation incarnation) const {
  const proto::Node* node = FindNode(state_.view(), id);
  if (node == nullptr) {
    return absl::AbortedError(absl::StrCat("node ", id.value(), " is not in job '",
                                           state_.job().name, "' at epoch ", state_.view().epoch(),
                                           ": it belongs to another run, or has left long ago; "
                                           "restart it"));
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

void Membership::OnRegistrationAnswered(absl::Time now, NodeId node) {
  if (Planted(PlantedBug::kSilenceFromRegistration)) return;
  RestartDetection(now, node, absl::ZeroDuration());
}

void Membership::OnRegistrationRefused(absl::Time now, NodeId node) {
  RestartDetection(now, node, kUntilAskedAgain);
}

void Membership::RestartDetection(absl::Time now, NodeId node, absl::Duration grace) {
  const auto at = health_.find(node);
  if (at == health_.end()) return;
  Health restarted = NewHealth(now, grace);
  restarted.load = std::move(at->second.load);
  at->second = std::move(restarted);
  Expect(at->second);
}

const proto::ServerLoad* Membership::LoadOf(NodeId server) const {
  const auto at = health_.find(server);
  return at == health_.end() ? nullptr : &at->second.load;
}

void Membership::OnHeartbeat(absl::Time now, NodeId node, const proto::HeartbeatRequest& request) {
  const auto at = health_.find(node);
  COVEY_CHECK(at != health_.end());
  Health& health = at->second;
  health.detector.Beat(now);
  Expect(health);
  health.lease_end = LeaseEnd(now);
  health.probe = 0;
  if (request.has_progress()) health.progress = request.progress();
  if (FindNode(state_.view(), node)->role() == proto::WORKER) {
    groups_.roster().OnProgress(node, health.progress);
  }
  if (request.has_load()) health.load = request.load();
}

void Membership::Leave(absl::Time now, NodeId id, const std::string& reason) {
  const proto::Node* node = FindNode(state_.view(), id);
  COVEY_CHECK(node != nullptr && node->state() == proto::Node::ALIVE);
  const std::string given = reason.substr(0, kNameBytesMax);
  Transaction change(state_);
  change.Add(NodeLeft{.description = Describe(*node), .reason = given});
  Depart(now, *node, proto::Node::LEFT,
         absl::StrCat("left at epoch ", change.epoch().value(), given.empty() ? "" : ": ", given),
         change);
  change.Commit();
}

absl::Status Membership::CheckLeave(NodeId id, Epoch known) const {
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

std::vector<Membership::Death> Membership::DeclareDead(absl::Time now) {
  std::vector<Death> deaths;
  std::vector<std::string> evidence;
  next_death_ = absl::InfiniteFuture();
  for (const auto& [id, health] : health_) {
    if (now < health.detector.DeadAt()) {
      Expect(health);
      continue;
    }
    deaths.push_back({.node = id, .lease_end = health.lease_end});
    evidence.push_back(absl::StrFormat("silent for %.1f s, suspicion %.1f",
                                       absl::ToDoubleSeconds(health.detector.Silence(now)),
                                       health.detector.Suspicion(now)));
  }
  for (size_t i = 0; i < deaths.size(); ++i) Declare(now, deaths[i].node, evidence[i]);
  return deaths;
}

void Membership::Declare(absl::Time now, NodeId id, const std::string& evidence) {
  const proto::Node& node = *FindNode(state_.view(), id);
  Transaction change(state_);
  change.Add(NodeDied{.description = Describe(node), .evidence = evidence});
  Depart(now, node, proto::Node::DEAD,
         absl::StrCat("declared dead at epoch ", change.epoch().value(), ": ", evidence), change);
  change.Commit();
}

std::optional<Message> Membership::OnConnectionLost(const proto::ConnectionLost& lost) {
  const proto::Node* node = FindNode(state_.view(), NodeId(lost.node()));
  if (node == nullptr || node->incarnation() != lost.incarnation()) return std::nullopt;
  return Probe(*node);
}

std::optional<Message> Membership::OnRankTaken(absl::Time now,
                                               const proto::RegisterRequest& refused) {
  if (refused.rank() < 0) return std::nullopt;
  const proto::Node* holder =
      FindHolder(state_.view(), refused.role(), static_cast<uint32_t>(refused.rank()));
  if (holder == nullptr) return std::nullopt;
  const auto health = health_.find(NodeId(holder->id()));
  if (health == health_.end()) return std::nullopt;
  if (health->second.detector.Silence(now) <= 2 * options_.heartbeat) return std::nullopt;
  return Probe(*holder);
}

std::optional<Message> Membership::Probe(const proto::Node& node) {
  const auto health = health_.find(NodeId(node.id()));
  if (health == health_.end() || health->second.probe != 0) return std::nullopt;
  const std::string endpoint = ProbedEndpoint(node);
  if (endpoint.empty()) return std::nullopt;
  health->second.probe = ++last_probe_;
  Message message;
  message.set_to({kSchedulerNode, kProbeLoop});
  message.envelope.mutable_header()->set_request_id(last_probe_);
  proto::ProbeRequest& probe = *message.envelope.mutable_probe_request();
  probe.set_node(node.id());
  probe.set_incarnation(node.incarnation());
  probe.set_endpoint(endpoint);
  return message;
}

std::optional<Membership::Death> Membership::OnProbeReply(absl::Time now, const Message& reply) {
  const proto::ProbeReply& found = reply.envelope.probe_reply();
  const uint64_t probe = reply.envelope.header().request_id();
  const proto::Node* node = FindNode(state_.view(), NodeId(found.node()));
  const auto health = health_.find(NodeId(found.node()));
  if (node == nullptr || health == health_.end() || node->incarnation() != found.incarnation() ||
      health->second.probe == 0) {
    return std::nullopt;
  }
  if (health->second.probe != probe && !Planted(PlantedBug::kHeedEarlierProbes)) {
    return std::nullopt;
  }
  health->second.probe = 0;
  if (found.result() != proto::ProbeReply::REFUSED) return std::nullopt;
  Death death{.node = NodeId(node->id())};
  if (node->host() != options_.own_host || !StaysInMachine(ProbedEndpoint(*node))) {
    death.lease_end = health->second.lease_end;
  }
  Declare(now, death.node, "its host refuses a connection");
  return death;
}

void Membership::Depart(absl::Time now, const proto::Node& node, proto::Node::State state,
                        std::string reason, Transaction& change) {
  proto::Node& edited = change.Edit(node);
  edited.set_state(state);
  edited.set_departure(std::move(reason));
  edited.clear_standby();
  edited.clear_draining();
  health_.erase(NodeId(node.id()));
  CountBytes(node);
  groups_.OnDeparture(now, node, change);
}

void Membership::Forget(const std::vector<NodeId>& departed, Transaction& change) {
  if (departed.empty()) return;
  for (const NodeId node : departed) {
    all_bytes_ -= bytes_.at(node);
    bytes_.erase(node);
  }
  auto& nodes = *change.EditView().mutable_nodes();
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(),
                             [&](const proto::Node& node) {
                               return std::binary_search(departed.begin(), departed.end(),
                                                         NodeId(node.id()));
                             }),
              nodes.end());
}

absl::Status Membership::CheckBytes(const proto::RegisterRequest& request,
                                    const std::vector<NodeId>& without) const {
  size_t bytes = all_bytes_ + request.ByteSizeLong();
  for (const NodeId node : without) bytes -= bytes_.at(node);
  if (bytes <= kNodesBytesMax) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("register: with this node, of ", request.ByteSizeLong(),
                   " bytes, the nodes of the view would have ", bytes, ", and ", kNodesBytesMax,
                   " can be told to others; start fewer processes, with fewer or shorter "
                   "endpoints"));
}

void Membership::CountBytes(const proto::Node& node) {
  size_t& counted = bytes_[NodeId(node.id())];
  all_bytes_ -= counted;
  counted = node.ByteSizeLong();
  all_bytes_ += counted;
}

void Membership::DiscountPause(absl::Duration pause) {
  for (auto& [id, health] : health_) health.detector.DiscountPause(pause);
}

absl::Status Membership::CheckServers() const {
  const std::string missing = MissingNodes(state_.job(), state_.view(), Expected::kServers);
  if (missing.empty()) return absl::OkStatus();
  // Once all servers have been ALIVE, tables need not wait for departed ones.
  const proto::ClusterView& view = state_.view();
  bool all_came = true;
  for (uint32_t rank = 0; rank < state_.job().servers; ++rank) {
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
