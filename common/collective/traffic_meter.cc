// SPDX-License-Identifier: Apache-2.0
#include "common/collective/traffic_meter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace covey {
namespace {

// At least half of the bandwidth remains, however many peers there are.
constexpr double kFlowLossMax = 2;

// A tree by parents, its members sorted by their distance from the root.
struct Tree {
  std::vector<uint32_t> parent;  // the root's own number at the root
  std::vector<uint32_t> order;   // root first
  std::vector<uint32_t> height;  // hops to the farthest leaf below

  Tree(uint32_t root, std::vector<uint32_t> parents)
      : parent(std::move(parents)), height(parent.size(), 0) {
    std::vector<uint32_t> begin(parent.size() + 1, 0);
    for (uint32_t member = 0; member < parent.size(); ++member) {
      if (member != root) ++begin[parent[member] + 1];
    }
    for (size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
    std::vector<uint32_t> children(parent.size());
    std::vector<uint32_t> next = begin;
    for (uint32_t member = 0; member < parent.size(); ++member) {
      if (member != root) children[next[parent[member]]++] = member;
    }
    order = {root};
    for (size_t i = 0; i < order.size(); ++i) {
      order.insert(order.end(), children.begin() + begin[order[i]],
                   children.begin() + begin[order[i] + 1]);
    }
    for (size_t i = order.size(); i-- > 1;) {
      uint32_t& above = height[parent[order[i]]];
      above = std::max(above, height[order[i]] + 1);
    }
  }
};

}  // namespace

TrafficMeter::Places::Places(std::span<const TopologyPath> paths) : paths_(paths) {
  for (size_t level = 0; level < kNamedLevels; ++level) {
    domains_[level] = DomainsAt(paths, static_cast<Level>(level));
  }
}

Level TrafficMeter::Places::Between(uint32_t a, uint32_t b) const {
  size_t level = 0;
  while (level < kNamedLevels && (domain(level, a) != domain(level, b) || !has_name(level, a))) {
    ++level;
  }
  return static_cast<Level>(level);
}

std::string TrafficMeter::Places::NameOf(size_t level, uint32_t domain) const {
  const auto at = std::find(domains_[level].begin(), domains_[level].end(), domain);
  TopologyPath path = paths_[static_cast<size_t>(at - domains_[level].begin())];
  for (size_t narrower = 0; narrower < level; ++narrower) {
    path.parts[kNamedLevels - 1 - narrower].clear();
  }
  return absl::StrCat(LevelName(static_cast<Level>(level)), " ", FormatTopologyPath(path));
}

TrafficMeter::TrafficMeter(const Plan& plan, std::span<const TopologyPath> paths,
                           const LinkCosts& costs)
    : plan_(plan), costs_(costs), places_(paths), messages_(plan.size()) {
  for (Traffic& traffic : traffic_) {
    traffic.members.resize(plan.size());
    traffic.peers.resize(plan.size());
    for (auto& uplinks : traffic.uplinks) uplinks.resize(plan.size());
  }
}

void TrafficMeter::Add(const Trees& trees) {
  Way way;
  if (trees.reduces) AddTree(trees, /*towards_owner=*/true, way);
  if (trees.spreads) AddTree(trees, /*towards_owner=*/false, way);
  if (trees.copies) {
    const Level level = places_.Between(trees.owner, trees.owner);
    traffic_[static_cast<size_t>(level)].members[trees.owner].out +=
        trees.bytes * trees.weight / costs_.at(level).bytes_per_second;
  }
  longest_.latency = std::max(longest_.latency, way.latency);
  longest_.transfer = std::max(longest_.transfer, way.transfer);
  weight_ = std::max(weight_, trees.weight);
}

Prediction TrafficMeter::Finish() {
  CountMessages();
  for (Traffic& traffic : traffic_) LoseToPeers(traffic);
  if (weight_ > 1) {
    for (Traffic& traffic : traffic_) SpreadInRacks(traffic.members);
    SpreadInRacks(messages_);
  }
  Prediction prediction;
  for (const Load& load : messages_) {
    prediction.messages = std::max(prediction.messages, load.out + load.in);
  }
  prediction.latency_seconds =
      std::max(longest_.latency, prediction.messages * costs_.message_seconds);
  prediction.transfer_seconds = longest_.transfer;
  prediction.bottleneck = "way of a slice";
  FindBottleneck(prediction);
  prediction.seconds = prediction.latency_seconds + prediction.transfer_seconds;
  prediction.stepwise_seconds = prediction.latency_seconds;
  for (const Traffic& traffic : traffic_) prediction.stepwise_seconds += Busiest(traffic);
  return prediction;
}

void TrafficMeter::AddTree(const Trees& trees, bool towards_owner, Way& way) {
  std::vector<uint32_t> parents(plan_.size());
  for (uint32_t rank = 0; rank < plan_.size(); ++rank) {
    parents[rank] = (towards_owner ? plan_.Reduce(trees.owner, trees.stripe, rank).parent
                                   : plan_.Spread(trees.owner, trees.stripe, rank).parent)
                        .value_or(trees.owner);
  }
  const Tree tree(trees.owner, std::move(parents));
  const double slice = std::min(trees.bytes, static_cast<double>(costs_.slice_bytes));
  std::vector<Way> ways(plan_.size());
  Way longest;
  for (size_t i = 1; i < tree.order.size(); ++i) {
    const uint32_t member = tree.order[i];
    const uint32_t parent = tree.parent[member];
    const Level level = places_.Between(member, parent);
    Way& here = ways[member];
    here = {ways[parent].latency + costs_.at(level).latency_seconds,
            ways[parent].transfer + slice / costs_.at(level).bytes_per_second};
    longest.latency = std::max(longest.latency, here.latency);
    longest.transfer = std::max(longest.transfer, here.transfer);
    // A member sends up when its subtree is done. On the way down, members with larger subtrees are
    // served first.
    AddHop({.from = towards_owner ? member : parent,
            .to = towards_owner ? parent : member,
            .towards_owner = towards_owner,
            .height = tree.height[member],
            .bytes = trees.bytes * trees.weight},
           level);
  }
  way.latency += longest.latency;
  way.transfer += longest.transfer;
}

void TrafficMeter::AddHop(const Hop& hop, Level link) {
  Traffic& traffic = traffic_[static_cast<size_t>(link)];
  const double seconds = hop.bytes / costs_.at(link).bytes_per_second;
  traffic.members[hop.from].out += seconds;
  traffic.members[hop.to].in += seconds;
  for (size_t level = 0; level < kNamedLevels; ++level) {
    const uint32_t from = places_.domain(level, hop.from);
    const uint32_t to = places_.domain(level, hop.to);
    if (from == to) break;
    if (places_.has_name(level, hop.from)) traffic.uplinks[level][from].out += hop.bytes;
    if (places_.has_name(level, hop.to)) traffic.uplinks[level][to].in += hop.bytes;
  }
  hops_.push_back(hop);
}

void TrafficMeter::CountMessages() {
  std::sort(hops_.begin(), hops_.end());
  size_t distinct = 0;
  for (size_t i = 0; i < hops_.size(); ++i) {
    distinct += i == 0 || !hops_[i].SameMessage(hops_[i - 1]) ? 1 : 0;
  }
  // If hardly any of the chosen sections share a message, those left out would not either: then
  // they add messages. Otherwise they make messages larger.
  const bool apart = static_cast<double>(distinct) > 0.9 * static_cast<double>(hops_.size());
  const double times = apart ? weight_ : 1;
  const double slice = static_cast<double>(costs_.slice_bytes) * times;
  for (size_t i = 0; i < hops_.size();) {
    const Hop& hop = hops_[i];
    if (i == 0 || hops_[i - 1].from != hop.from || hops_[i - 1].to != hop.to) {
      Traffic& traffic = traffic_[static_cast<size_t>(places_.Between(hop.from, hop.to))];
      ++traffic.peers[hop.from].out;
      ++traffic.peers[hop.to].in;
    }
    double bytes = 0;
    for (; i < hops_.size() && hop.SameMessage(hops_[i]); ++i) bytes += hops_[i].bytes;
    const double messages = times * std::max(1.0, bytes / slice);
    messages_[hop.from].out += messages;
    messages_[hop.to].in += messages;
  }
}

void TrafficMeter::LoseToPeers(Traffic& traffic) const {
  const auto times = [this](double peers) {
    return std::min(kFlowLossMax, 1 + costs_.flow_loss * std::max(0.0, peers - 1));
  };
  for (uint32_t member = 0; member < plan_.size(); ++member) {
    const Load& peers = traffic.peers[member];
    traffic.members[member].out *= times(peers.out);
    traffic.members[member].in *= times(peers.in);
  }
}

// When only some owners are examined, the load piles up at these; in truth every owner has its
// share.
void TrafficMeter::SpreadInRacks(std::vector<Load>& loads) const {
  constexpr auto kRack = static_cast<size_t>(Level::kRack);
  std::vector<Load> sums(plan_.size());
  std::vector<double> counts(plan_.size(), 0);
  for (uint32_t member = 0; member < plan_.size(); ++member) {
    const uint32_t rack = places_.domain(kRack, member);
    sums[rack] = sums[rack] + loads[member];
    ++counts[rack];
  }
  for (uint32_t member = 0; member < plan_.size(); ++member) {
    const uint32_t rack = places_.domain(kRack, member);
    loads[member] = {sums[rack].out / counts[rack], sums[rack].in / counts[rack]};
  }
}

void TrafficMeter::FindBottleneck(Prediction& prediction) const {
  const auto consider = [&](const Load& seconds, const auto& name) {
    if (seconds.most() <= prediction.transfer_seconds) return;
    prediction.transfer_seconds = seconds.most();
    prediction.bottleneck = absl::StrCat(name(), seconds.out >= seconds.in ? ", out" : ", in");
  };
  for (uint32_t i = 0; i < plan_.size(); ++i) {
    Load member;
    for (const Traffic& traffic : traffic_) member = member + traffic.members[i];
    consider(member, [&] { return absl::StrCat("member ", i); });
    for (size_t level = 0; level < kNamedLevels; ++level) {
      Load bytes;
      for (const Traffic& traffic : traffic_) bytes = bytes + traffic.uplinks[level][i];
      if (bytes.most() == 0) continue;
      prediction.uplink_bytes[level] = std::max(prediction.uplink_bytes[level], bytes.most());
      consider(bytes.Over(costs_.levels[level].uplink_bytes_per_second),
               [&] { return places_.NameOf(level, i); });
    }
  }
}

// Seconds of the busiest of the links that `traffic` uses.
double TrafficMeter::Busiest(const Traffic& traffic) const {
  double seconds = 0;
  for (uint32_t i = 0; i < plan_.size(); ++i) {
    seconds = std::max(seconds, traffic.members[i].most());
    for (size_t level = 0; level < kNamedLevels; ++level) {
      const double bandwidth = costs_.levels[level].uplink_bytes_per_second;
      seconds = std::max(seconds, traffic.uplinks[level][i].Over(bandwidth).most());
    }
  }
  return seconds;
}

}  // namespace covey
