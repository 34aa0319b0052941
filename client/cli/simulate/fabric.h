// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/simulate/cluster_options.h"

namespace covey::cli {

// The links of a cluster, and their queues:
//
//   node ── rack switch ── uplink ── all other racks
//                             └──── servers, which share the load evenly
//
// A link carries messages one after another in the order in which they were sent, at full speed. A
// message may be on all links of its path at once (no switch waits for its last byte). Links carry
// both directions independently. A node has one loop for all messages that it sends and receives.
// Servers are outside the racks.
//
// Actor-confined. Deterministic. Messages must be sent in order of time.
class Fabric {
 public:
  Fabric(const LinkOptions& options, std::vector<uint32_t> rack_of_node, uint32_t servers);

  // When the last byte of a message that is sent at `now` reaches the receiver's loop.
  absl::Time Send(absl::Time now, uint32_t from, uint32_t to, double bytes);
  // When that loop is idle.
  absl::Time LoopFree(uint32_t node) const { return loop_free_[node]; }
  // When that loop has processed a message that reached it at `now`.
  absl::Time Receive(absl::Time now, uint32_t to) { return PassLoop(to, now); }

  absl::Time SendToServers(absl::Time now, uint32_t node, double bytes);
  absl::Time SendFromServers(absl::Time now, uint32_t node, double bytes);

  // The same for `bytes` in equal pieces, one for each of `nodes`.
  absl::Time AllSendToServers(absl::Time now, const std::vector<uint32_t>& nodes, double bytes);
  absl::Time AllReceiveFromServers(absl::Time now, const std::vector<uint32_t>& nodes,
                                   double bytes);

  // Counts traffic of a collective that is not sent message by message.
  void CountUplink(uint32_t rack, double bytes) { uplink_bytes_[rack] += bytes; }
  // Per rack, both directions together.
  const std::vector<double>& uplink_bytes() const { return uplink_bytes_; }
  uint32_t rack_of(uint32_t node) const { return rack_of_node_[node]; }

 private:
  struct Link {
    double seconds_per_byte = 0;
    absl::Time free;
  };

  // When `bytes` that reach a link at `now` have passed it.
  static absl::Time Pass(Link& link, absl::Time now, double bytes);

  absl::Time PassLoop(uint32_t node, absl::Time now);

  const LinkOptions options_;
  const std::vector<uint32_t> rack_of_node_;
  std::vector<absl::Time> loop_free_;  // per node
  std::vector<Link> out_;
  std::vector<Link> in_;
  std::vector<Link> up_;  // per rack
  std::vector<Link> down_;
  Link to_servers_;
  Link from_servers_;
  std::vector<double> uplink_bytes_;
  std::vector<uint32_t> rack_count_;  // scratch: of the nodes in a call
};

}  // namespace covey::cli
