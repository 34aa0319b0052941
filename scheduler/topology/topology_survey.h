// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/cluster/link_costs.h"
#include "common/grouping/measured_racks.h"
#include "proto/scheduler.pb.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// Where the workers of a job with JobSpec::plans_groups are, by what they measure. A newcomer
// measures its links to workers that are there already (ProbeOrder): to all of them, or to
// kProbedPeersMax where there are more, of which half are its neighbors by rank and half are drawn
// at random.
//
//   first heartbeat ─▶ asked, with each reply ── ProbeReport ─▶ has reported
//
// When all have reported, or kReportMax after the last one came, workers whose labels name no rack
// get the rack that the measurements show (common/grouping/measured_racks.h): round trips of empty
// messages, or, where these show no racks, the time that a megabyte takes. Names that people
// gave stay, and so does a measured name, once it is given. Members of an ACTIVE group are not
// named: a group's members must agree on where they are, and might read it from different views.
//
// More than kClusteredMax workers without a rack of their own are not clustered, because that would
// take too long: their labels stay as they are.
//
// Actor-confined, deterministic. `state` outlives it. Measurements are lost at a restart of the
// scheduler, and all workers are asked again; labels are in the log.
class TopologySurvey {
 public:
  static constexpr absl::Duration kReportMax = absl::Seconds(5);
  // Clustering so many takes 20 ms; it can grow with the third power of their number.
  static constexpr size_t kClusteredMax = 256;

  explicit TopologySurvey(ClusterState& state) : state_(state) {}

  // Of an ALIVE worker.
  void OnHeartbeat(absl::Time now, NodeId worker, const proto::HeartbeatRequest& request);
  // What it is to measure (HeartbeatReply.probe).
  void Tell(NodeId worker, proto::HeartbeatReply& reply) const;
  // A node is no longer ALIVE.
  void OnDeparture(NodeId node);

  // Names racks. To be called about every half second. True: Costs has changed.
  bool Tick(absl::Time now);

  // Whether nothing is to be waited for: groups can be planned by labels and Costs. So it always is
  // for a job whose groups are not planned.
  bool settled(absl::Time now) const;
  // Between how many pairs of ALIVE workers the round trip is known.
  size_t measured_links() const;
  // Fitted to them, by level of topology; the defaults without any.
  LinkCosts Costs() const;

 private:
  struct Link {
    double round_trip_seconds = 0;
    double bytes_per_second = 0;  // 0 = not measured
  };
  struct Worker {
    proto::ProbeOrder order;
    bool has_reported = false;
    std::map<NodeId, Link> links;  // to whom it has measured
  };

  bool is_enabled() const { return state_.job().plans_groups; }
  // The worker's first heartbeat to this scheduler, or the first Tick that sees it.
  Worker& Meet(absl::Time now, NodeId worker);
  std::vector<NodeId> ChoosePeers(NodeId worker) const;
  void TakeReport(NodeId reporter, const proto::ProbeReport& report);
  void NameRacks();
  // Until so many bytes are there and a small message is back; 0 = not measured.
  static double Seconds(const Link& link, size_t bytes);
  // The same between these workers, by index.
  DistanceMatrix DistancesOf(const std::vector<const proto::Node*>& workers, size_t bytes) const;

  ClusterState& state_;
  std::map<NodeId, Worker> workers_;  // ALIVE ones
  uint64_t last_order_ = 0;
  absl::Time last_came_ = absl::InfinitePast();
  bool has_news_ = false;  // of links, since the last time that racks were named
};

}  // namespace covey::scheduler
