// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "common/cluster/link_costs.h"
#include "common/cluster/topology.h"
#include "common/collective/cost_model.h"
#include "common/collective/plan.h"

namespace covey {

// Walks over the trees of a plan's sections and adds up the traffic of each link; the inner part of
// the cost model. `plan`, `paths` and `costs` must outlive it.
class TrafficMeter {
 public:
  TrafficMeter(const Plan& plan, std::span<const TopologyPath> paths, const LinkCosts& costs);

  // The trees of one owner of a section.
  struct Trees {
    uint32_t owner = 0;
    uint32_t stripe = 0;
    double bytes = 0;
    bool reduces = false;
    bool spreads = false;
    // The owner copies its own values, too, which costs it as much as another member's.
    bool copies = false;
    // The number of trees that these represent.
    double weight = 1;
  };
  void Add(const Trees& trees);
  // To be called once, at the end.
  Prediction Finish();

 private:
  // Both directions of a link, an uplink or a member.
  struct Load {
    double out = 0;
    double in = 0;

    double most() const { return std::max(out, in); }
    Load Over(double bandwidth) const { return {out / bandwidth, in / bandwidth}; }
    Load operator+(const Load& other) const { return {out + other.out, in + other.in}; }
  };

  // Domains by number, for a fast look-up of a hop's level.
  class Places {
   public:
    explicit Places(std::span<const TopologyPath> paths);

    uint32_t domain(size_t level, uint32_t member) const { return domains_[level][member]; }
    bool has_name(size_t level, uint32_t member) const {
      return !paths_[member].at(static_cast<Level>(level)).empty();
    }
    // CommonLevel of two members.
    Level Between(uint32_t a, uint32_t b) const;
    // "rack z/r1".
    std::string NameOf(size_t level, uint32_t domain) const;

   private:
    std::span<const TopologyPath> paths_;
    std::array<std::vector<uint32_t>, kNamedLevels> domains_;
  };
  // Sections of the same height, from one member to another, are one message.
  struct Hop {
    uint32_t from, to;
    bool towards_owner;
    uint32_t height;
    double bytes;

    bool SameMessage(const Hop& other) const {
      return from == other.from && to == other.to && towards_owner == other.towards_owner &&
             height == other.height;
    }
    bool operator<(const Hop& other) const {
      return std::tie(from, to, towards_owner, height) <
             std::tie(other.from, other.to, other.towards_owner, other.height);
    }
  };
  // The traffic on the links of one level.
  struct Traffic {
    std::vector<Load> members;                            // seconds
    std::vector<Load> peers;                              // count
    std::array<std::vector<Load>, kNamedLevels> uplinks;  // bytes, by domain
  };
  struct Way {
    double latency = 0;
    double transfer = 0;
  };

  void AddTree(const Trees& trees, bool towards_owner, Way& way);
  void AddHop(const Hop& hop, Level link);
  void CountMessages();
  void LoseToPeers(Traffic& traffic) const;
  void SpreadInRacks(std::vector<Load>& loads) const;
  void FindBottleneck(Prediction& prediction) const;
  double Busiest(const Traffic& traffic) const;

  const Plan& plan_;
  const LinkCosts& costs_;
  const Places places_;
  std::array<Traffic, kLevels> traffic_;
  std::vector<Load> messages_;  // count
  std::vector<Hop> hops_;
  Way longest_;
  double weight_ = 1;
};

}  // namespace covey
