// SPDX-License-Identifier: Apache-2.0
#include "scheduler/topology/topology_survey.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "common/base/median.h"
#include "common/base/random.h"
#include "common/cluster/limits.h"
#include "common/cluster/topology.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

// On each side.
constexpr size_t kNeighborsByRank = kProbedPeersMax / 4;
// What a bandwidth is told to FitLinkCosts by.
constexpr size_t kSampleBytes = 1 << 20;

bool IsAliveWorker(const proto::Node& node) {
  return node.role() == proto::WORKER && node.state() == proto::Node::ALIVE;
}

bool IsUsable(double number) { return std::isfinite(number) && number > 0; }

std::vector<const proto::Node*> AliveWorkers(const proto::ClusterView& view) {
  std::vector<const proto::Node*> workers;
  for (const proto::Node& node : view.nodes()) {
    if (IsAliveWorker(node)) workers.push_back(&node);
  }
  return workers;
}

RacksMeasured EvidenceOf(const std::vector<const proto::Node*>& workers, const Clustering& rack_of,
                         const DistanceMatrix& distances) {
  RacksMeasured event;
  std::vector<double> inside, between;
  for (size_t a = 0; a < workers.size(); ++a) {
    event.racks.resize(std::max<size_t>(event.racks.size(), rack_of[a] + 1));
    event.racks[rack_of[a]].push_back(workers[a]->name());
    for (size_t b = 0; b < a; ++b) {
      const double distance = distances.At(a, b);
      if (distance > 0) (rack_of[a] == rack_of[b] ? inside : between).push_back(distance);
    }
  }
  event.inside = absl::Seconds(UpperMedian(std::move(inside)));
  event.between = absl::Seconds(UpperMedian(std::move(between)));
  return event;
}

// Of all racks in the view.
std::set<std::string> RackNames(const proto::ClusterView& view) {
  std::set<std::string> names;
  for (const proto::Node& node : view.nodes()) {
    names.insert(ParseTopologyPath(node.labels()).rack());
  }
  return names;
}

}  // namespace

TopologySurvey::Worker& TopologySurvey::Meet(absl::Time now, NodeId worker) {
  const auto [at, is_new] = workers_.try_emplace(worker);
  if (is_new) last_came_ = now;
  return at->second;
}

std::vector<NodeId> TopologySurvey::ChoosePeers(NodeId worker) const {
  std::vector<const proto::Node*> ring = AliveWorkers(state_.view());
  std::sort(ring.begin(), ring.end(), [](const proto::Node* a, const proto::Node* b) {
    return std::pair(a->rank(), a->id()) < std::pair(b->rank(), b->id());
  });
  const auto own = std::find_if(ring.begin(), ring.end(), [&](const proto::Node* node) {
    return NodeId(node->id()) == worker;
  });
  // The others, beginning after the worker, so that each begins with another peer.
  std::rotate(ring.begin(), own, ring.end());
  ring.erase(ring.begin());
  std::vector<NodeId> peers;
  for (const proto::Node* node : ring) peers.push_back(NodeId(node->id()));
  if (peers.size() <= kProbedPeersMax) return peers;
  // The nearest ones behind come next to those ahead, and then others at random.
  std::rotate(peers.begin() + kNeighborsByRank, peers.end() - kNeighborsByRank, peers.end());
  Random random(worker.value());
  for (size_t i = 2 * kNeighborsByRank; i < kProbedPeersMax; ++i) {
    std::swap(peers[i], peers[i + random.Below(peers.size() - i)]);
  }
  peers.resize(kProbedPeersMax);
  return peers;
}

void TopologySurvey::OnHeartbeat(absl::Time now, NodeId worker,
                                 const proto::HeartbeatRequest& request) {
  if (!is_enabled()) return;
  proto::ProbeOrder& order = Meet(now, worker).order;
  if (order.order() == 0) {
    order.set_order(++last_order_);
    for (const NodeId peer : ChoosePeers(worker)) order.add_peers(peer.value());
    // The first worker has nothing to measure.
    if (order.peers().empty()) TakeReport(worker, {});
  }
  if (request.probes().order() == order.order()) TakeReport(worker, request.probes());
}

void TopologySurvey::TakeReport(NodeId reporter, const proto::ProbeReport& report) {
  Worker& worker = workers_.at(reporter);
  if (std::exchange(worker.has_reported, true)) return;
  has_news_ = true;
  for (int i = 0; i < report.links_size() && i < static_cast<int>(kProbedPeersMax); ++i) {
    const proto::ProbedLink& told = report.links(i);
    const proto::Node* const peer = FindNode(state_.view(), NodeId(told.node()));
    if (peer == nullptr || !IsAliveWorker(*peer) || NodeId(told.node()) == reporter ||
        !IsUsable(told.round_trip_seconds())) {
      continue;
    }
    worker.links[NodeId(told.node())] = {
        .round_trip_seconds = told.round_trip_seconds(),
        .bytes_per_second = IsUsable(told.bytes_per_second()) ? told.bytes_per_second() : 0};
  }
}

void TopologySurvey::Tell(NodeId worker, proto::HeartbeatReply& reply) const {
  const auto at = workers_.find(worker);
  if (at == workers_.end() || at->second.has_reported) return;
  *reply.mutable_probe() = at->second.order;
}

void TopologySurvey::OnDeparture(NodeId node) {
  workers_.erase(node);
  for (auto& [id, worker] : workers_) worker.links.erase(node);
}

bool TopologySurvey::settled(absl::Time now) const {
  if (!is_enabled()) return true;
  bool all_reported = true;
  for (const proto::Node* node : AliveWorkers(state_.view())) {
    const auto at = workers_.find(NodeId(node->id()));
    if (at == workers_.end()) return false;  // It has just come.
    all_reported = all_reported && at->second.has_reported;
  }
  return all_reported || now >= last_came_ + kReportMax;
}

bool TopologySurvey::Tick(absl::Time now) {
  if (!is_enabled()) return false;
  for (const proto::Node* node : AliveWorkers(state_.view())) Meet(now, NodeId(node->id()));
  if (!has_news_ || !settled(now)) return false;
  has_news_ = false;
  NameRacks();
  return true;
}

double TopologySurvey::Seconds(const Link& link, size_t bytes) {
  if (bytes == 0) return link.round_trip_seconds;
  if (link.bytes_per_second == 0) return 0;
  return link.round_trip_seconds + static_cast<double>(bytes) / link.bytes_per_second;
}

DistanceMatrix TopologySurvey::DistancesOf(const std::vector<const proto::Node*>& workers,
                                           size_t bytes) const {
  std::map<NodeId, size_t> index;
  for (size_t i = 0; i < workers.size(); ++i) index[NodeId(workers[i]->id())] = i;
  DistanceMatrix distances(workers.size());
  for (size_t from = 0; from < workers.size(); ++from) {
    for (const auto& [peer, link] : workers_.at(NodeId(workers[from]->id())).links) {
      const auto to = index.find(peer);
      if (to != index.end()) distances.Set(from, to->second, Seconds(link, bytes));
    }
  }
  return distances;
}

void TopologySurvey::NameRacks() {
  std::vector<const proto::Node*> workers = AliveWorkers(state_.view());
  std::erase_if(workers, [](const proto::Node* node) {
    return !node->rack_is_measured() && !ParseTopologyPath(node->labels()).rack().empty();
  });
  if (workers.size() < kMeasuredRacksFrom || workers.size() > kClusteredMax) return;
  std::vector<TopologyPath> paths;
  for (const proto::Node* node : workers) paths.push_back(ParseTopologyPath(node->labels()));
  // A rack behind a narrow uplink need not be far away: then only data show it.
  size_t bytes = 0;
  DistanceMatrix distances = DistancesOf(workers, bytes);
  Clustering rack_of = MeasuredRacks(distances, paths);
  if (rack_of.empty()) {
    bytes = kSampleBytes;
    distances = DistancesOf(workers, bytes);
    rack_of = MeasuredRacks(distances, paths);
  }
  if (rack_of.empty()) return;
  // A rack keeps the name that the first of its workers has.
  std::map<uint32_t, std::string> names;
  for (size_t i = 0; i < workers.size(); ++i) {
    if (!paths[i].rack().empty()) names.try_emplace(rack_of[i], paths[i].rack());
  }
  // Workers beside members of a group that have no name get none either: they would be told apart.
  const std::set<uint64_t> in_groups = MembersOfActiveGroups(state_.view());
  for (size_t i = 0; i < workers.size(); ++i) {
    if (in_groups.contains(workers[i]->id())) names.try_emplace(rack_of[i], "");
  }
  std::set<std::string> taken = RackNames(state_.view());
  uint32_t next = 0;
  Transaction change(state_);
  bool any = false;
  for (size_t i = 0; i < workers.size(); ++i) {
    if (!paths[i].rack().empty() || in_groups.contains(workers[i]->id())) continue;
    const auto [name, is_new] = names.try_emplace(rack_of[i]);
    if (is_new) {
      do name->second = MeasuredRackName(next++);
      while (!taken.insert(name->second).second);
    }
    // Zone, rack, host, device.
    paths[i].parts[1] = name->second;
    const std::string labels = FormatTopologyPath(paths[i]);
    if (name->second.empty() || labels.size() > kLabelBytesMax) continue;
    proto::Node& node = change.Edit(*workers[i]);
    node.set_labels(labels);
    node.set_rack_is_measured(true);
    any = true;
  }
  if (!any) return;
  RacksMeasured evidence = EvidenceOf(workers, rack_of, distances);
  evidence.bytes = bytes;
  change.Add(std::move(evidence));
  change.Commit();
}

size_t TopologySurvey::measured_links() const {
  std::set<std::pair<NodeId, NodeId>> pairs;
  for (const auto& [from, worker] : workers_) {
    for (const auto& [to, link] : worker.links) pairs.insert(std::minmax(from, to));
  }
  return pairs.size();
}

LinkCosts TopologySurvey::Costs() const {
  std::map<NodeId, TopologyPath> paths;
  for (const proto::Node* node : AliveWorkers(state_.view())) {
    paths[NodeId(node->id())] = ParseTopologyPath(node->labels());
  }
  std::vector<LinkSample> samples;
  for (const auto& [from, worker] : workers_) {
    for (const auto& [to, link] : worker.links) {
      const Level level = CommonLevel(paths[from], paths[to]);
      for (const size_t bytes : {size_t{0}, kSampleBytes}) {
        if (const double seconds = Seconds(link, bytes); seconds > 0) {
          samples.push_back({.level = level, .bytes = bytes, .round_trip_seconds = seconds});
        }
      }
    }
  }
  return FitLinkCosts(samples);
}

}  // namespace covey::scheduler
