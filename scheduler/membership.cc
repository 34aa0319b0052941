#include "scheduler/membership.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/cluster/group_planner.h"
#include "common/cluster/limits.h"

namespace covey::scheduler {
namespace {

// Departed clients stay in the view for error messages, but not all that ever were.
constexpr int kDepartedClientsKept = 64;
constexpr size_t kMissingNamed = 8;

std::string RoleName(proto::Role role) { return absl::AsciiStrToLower(proto::Role_Name(role)); }

std::string NodeName(proto::Role role, uint32_t rank) {
  return absl::StrCat(RoleName(role), "-", rank);
}

// "worker-1 (node 5, pid 123 on host h)".
std::string Describe(const proto::Node& node) {
  return absl::StrCat(node.name(), " (node ", node.id(), ", pid ", node.process_id(), " on host ",
                      node.host(), ")");
}

}  // namespace

void Membership::Start(absl::Time now) {
  proto::ClusterView& view = *state_.mutable_view();
  for (const proto::Node& node : view.nodes()) {
    if (node.state() != proto::Node::ALIVE) continue;
    health_.emplace(NodeId(node.id()), NewHealth(now + config_.restart_grace));
  }
  if (view.groups().empty()) view.set_waiting_for(Missing(Expected::kServersAndWorkers));
}

Membership::Health Membership::NewHealth(absl::Time since) const {
  return {.detector = FailureDetector(
              {.beat = config_.heartbeat, .silence_min = config_.silence_min}, since)};
}

absl::Status Membership::CheckRequest(const proto::RegisterRequest& request) const {
  if (request.job_name() != config_.job_name) {
    return absl::InvalidArgumentError(
        absl::StrCat("this scheduler runs job '", config_.job_name, "', not '", request.job_name(),
                     "': check the scheduler's address and the job name"));
  }
  if (request.role() != proto::SERVER && request.role() != proto::WORKER &&
      request.role() != proto::CLIENT) {
    return absl::InvalidArgumentError(absl::StrCat("register: role ",
                                                   static_cast<int>(request.role()),
                                                   " is not one of server, worker, client"));
  }
  if (request.rank() < -1) {
    return absl::InvalidArgumentError(
        absl::StrCat("register: rank ", request.rank(), " is neither -1 (any) nor a rank"));
  }
  if (request.labels().size() > kLabelBytesMax || request.host().size() > kNameBytesMax ||
      request.endpoints_size() > static_cast<int>(kEndpointsPerNodeMax)) {
    return absl::InvalidArgumentError(
        absl::StrCat("register: at most ", kLabelBytesMax, " bytes of labels, ", kNameBytesMax,
                     " bytes of host name and ", kEndpointsPerNodeMax, " endpoints are allowed"));
  }
  for (const std::string& endpoint : request.endpoints()) {
    if (endpoint.size() > kEndpointBytesMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("register: an endpoint has more than ", kEndpointBytesMax, " bytes"));
    }
  }
  if (request.role() == proto::SERVER) {
    const auto& endpoints = request.endpoints();
    if (endpoints.size() < 2 || std::any_of(endpoints.begin() + 1, endpoints.end(),
                                            [](const std::string& e) { return e.empty(); })) {
      return absl::InvalidArgumentError(
          "register: a server needs an endpoint for each of its data loops (1, 2, …)");
    }
  }
  return absl::OkStatus();
}

const proto::Node* Membership::Holder(proto::Role role, uint32_t rank) const {
  const auto& nodes = state_.view().nodes();
  const auto at = std::find_if(nodes.rbegin(), nodes.rend(), [&](const proto::Node& node) {
    return node.role() == role && node.rank() == rank;
  });
  return at == nodes.rend() ? nullptr : &*at;
}

absl::StatusOr<uint32_t> Membership::ChooseRank(const proto::RegisterRequest& request) const {
  const proto::Role role = request.role();
  const std::string name = RoleName(role);
  const uint32_t expected = role == proto::SERVER   ? config_.servers
                            : role == proto::WORKER ? config_.workers()
                                                    : static_cast<uint32_t>(kNodesMax);
  const auto full = [&](absl::string_view why) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job is full: '", config_.job_name, "' expects ", expected, " ", name, "s (ranks from 0): ",
        why, "; start the scheduler with more ", name, "s or stop the other one"));
  };
  if (role == proto::WORKER && !state_.view().groups().empty()) {
    return full("its groups have formed, and a worker cannot yet join or rejoin a running group");
  }
  if (request.rank() >= 0) {
    const uint32_t rank = static_cast<uint32_t>(request.rank());
    if (rank >= expected) return full(absl::StrCat("there is no rank ", rank));
    const proto::Node* holder = Holder(role, rank);
    if (holder == nullptr || holder->state() != proto::Node::ALIVE) return rank;
    return absl::AlreadyExistsError(absl::StrCat(
        "rank ", rank, " is held by ", Describe(*holder),
        ": give this process another rank, or stop that one; if it crashed just now, try again in ",
        absl::FormatDuration(config_.silence_min + config_.heartbeat)));
  }
  std::vector<bool> held(expected, false);
  for (const proto::Node& node : state_.view().nodes()) {
    if (node.role() == role && node.state() == proto::Node::ALIVE && node.rank() < expected) {
      held[node.rank()] = true;
    }
  }
  const auto free = std::find(held.begin(), held.end(), false);
  if (free != held.end()) return static_cast<uint32_t>(free - held.begin());
  return full("all ranks are held by live nodes");
}

absl::StatusOr<Membership::Registration> Membership::Register(absl::Time now,
                                                              const proto::RegisterRequest& request,
                                                              Incarnation incarnation) {
  COVEY_RETURN_IF_ERROR(CheckRequest(request));
  if (incarnation == Incarnation()) {
    return absl::InvalidArgumentError("register: the incarnation is 0; draw a random one");
  }
  proto::ClusterView& view = *state_.mutable_view();
  for (const proto::Node& node : view.nodes()) {
    if (node.incarnation() != incarnation.value()) continue;
    COVEY_RETURN_IF_ERROR(CheckSender(NodeId(node.id()), incarnation));
    return Registration{.node = NodeId(node.id()), .rank = node.rank()};
  }
  COVEY_ASSIGN_OR_RETURN(const uint32_t rank, ChooseRank(request));
  const proto::Node* replaced = Holder(request.role(), rank);
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
  health_.emplace(NodeId(node.id()), NewHealth(now));

  std::string decision = absl::StrCat(Describe(node), " registered");
  if (replaces != NodeId()) absl::StrAppend(&decision, " in place of node ", replaces.value());
  const std::string formed = FormGroups();
  if (!formed.empty()) absl::StrAppend(&decision, "; ", formed);
  return Registration{.node = NodeId(node.id()),
                      .rank = rank,
                      .replaces = replaces,
                      .decision = std::move(decision)};
}

absl::Status Membership::CheckSender(NodeId id, Incarnation incarnation) const {
  const proto::Node* node = Find(id);
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
  const proto::Node* holder = Holder(node->role(), node->rank());
  return absl::AbortedError(absl::StrCat(
      Describe(*node), " ", node->departure(),
      holder == node ? "" : absl::StrCat("; replaced by ", Describe(*holder)),
      node->state() == proto::Node::DEAD ? "; restart the process to join as a new node" : ""));
}

bool Membership::HasLeft(NodeId id, Incarnation incarnation) const {
  const proto::Node* node = Find(id);
  return node != nullptr && node->incarnation() == incarnation.value() &&
         node->state() == proto::Node::LEFT;
}

void Membership::Heartbeat(absl::Time now, NodeId node, const proto::HeartbeatRequest& request) {
  const auto at = health_.find(node);
  COVEY_CHECK(at != health_.end());
  Health& health = at->second;
  health.detector.Beat(now);
  if (request.has_progress()) health.progress = request.progress();
  if (request.has_load()) health.load = request.load();
}

Membership::Decision Membership::Leave(NodeId id, const std::string& reason) {
  proto::Node* node = Find(id);
  COVEY_CHECK(node != nullptr && node->state() == proto::Node::ALIVE);
  const std::string why = reason.empty() ? "" : absl::StrCat(": ", reason.substr(0, kNameBytesMax));
  Depart(*node, proto::Node::LEFT, absl::StrCat("left at epoch ", state_.view().epoch() + 1, why));
  return absl::StrCat(Describe(*node), " left", why);
}

std::vector<Membership::Death> Membership::FindDead(absl::Time now) {
  std::vector<Death> deaths;
  for (const auto& [id, health] : health_) {
    if (now < health.detector.DeadAt()) continue;
    deaths.push_back(
        {.node = id,
         .decision = absl::StrFormat("silent for %.1f s, suspicion %.1f",
                                     absl::ToDoubleSeconds(health.detector.Silence(now)),
                                     health.detector.Suspicion(now))});
  }
  for (Death& death : deaths) {
    proto::Node* node = Find(death.node);
    const std::string evidence = std::exchange(death.decision, "");
    Depart(*node, proto::Node::DEAD,
           absl::StrCat("declared dead at epoch ", state_.view().epoch() + 1, ": ", evidence));
    death.decision = absl::StrCat(Describe(*node), " dead: ", evidence);
  }
  return deaths;
}

void Membership::Depart(proto::Node& node, proto::Node::State state, std::string reason) {
  proto::ClusterView& view = *state_.mutable_view();
  view.set_epoch(view.epoch() + 1);
  node.set_state(state);
  node.set_departure(std::move(reason));
  health_.erase(NodeId(node.id()));
  if (view.groups().empty()) view.set_waiting_for(Missing(Expected::kServersAndWorkers));

  for (proto::Group& group : *view.mutable_groups()) {
    const auto& members = group.members();
    if (group.state() != proto::Group::ACTIVE ||
        std::find(members.begin(), members.end(), node.id()) == members.end()) {
      continue;
    }
    if (state == proto::Node::DEAD) {
      group.set_state(proto::Group::BROKEN);
      group.set_reason(absl::StrCat(Describe(node), " ", node.departure()));
    } else if (std::all_of(members.begin(), members.end(), [&](uint64_t member) {
                 return Find(NodeId(member))->state() == proto::Node::LEFT;
               })) {
      group.set_state(proto::Group::DONE);
    }
  }
}

Membership::Decision Membership::FormGroups() {
  proto::ClusterView& view = *state_.mutable_view();
  if (!view.groups().empty()) return "";
  view.set_waiting_for(Missing(Expected::kServersAndWorkers));
  if (!view.waiting_for().empty() || config_.workers() == 0) return "";

  std::vector<PlannedWorker> workers;
  for (const proto::Node& node : view.nodes()) {
    if (node.role() != proto::WORKER || node.state() != proto::Node::ALIVE) continue;
    workers.push_back({.node = NodeId(node.id()), .rank = node.rank(), .labels = node.labels()});
  }
  for (const std::vector<NodeId>& members : PlanGroups(std::move(workers), config_.groups)) {
    proto::Group& group = *view.add_groups();
    group.set_id(static_cast<uint32_t>(view.groups_size()));
    group.set_generation(1);
    for (NodeId member : members) group.add_members(member.value());
    group.set_state(proto::Group::ACTIVE);
  }
  return absl::StrCat("everyone is here: ", view.groups_size(), " groups formed by labels");
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
  const std::string missing = Missing(Expected::kServers);
  if (missing.empty()) return absl::OkStatus();
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

proto::Node* Membership::Find(NodeId node) {
  return const_cast<proto::Node*>(std::as_const(*this).Find(node));
}

const proto::Node* Membership::Find(NodeId id) const {
  const auto& nodes = state_.view().nodes();
  const auto at =
      std::lower_bound(nodes.begin(), nodes.end(), id.value(),
                       [](const proto::Node& node, uint64_t wanted) { return node.id() < wanted; });
  return at != nodes.end() && at->id() == id.value() ? &*at : nullptr;
}

std::string Membership::Missing(Expected expected) const {
  std::vector<std::string> missing;
  const auto look_for = [&](proto::Role role, uint32_t count) {
    std::vector<bool> here(count, false);
    for (const proto::Node& node : state_.view().nodes()) {
      if (node.role() == role && node.state() == proto::Node::ALIVE && node.rank() < count) {
        here[node.rank()] = true;
      }
    }
    for (uint32_t rank = 0; rank < count; ++rank) {
      if (!here[rank]) missing.push_back(NodeName(role, rank));
    }
  };
  look_for(proto::SERVER, config_.servers);
  if (expected == Expected::kServersAndWorkers) look_for(proto::WORKER, config_.workers());
  const size_t more = missing.size() > kMissingNamed ? missing.size() - kMissingNamed : 0;
  missing.resize(missing.size() - more);
  return absl::StrCat(absl::StrJoin(missing, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

}  // namespace covey::scheduler
