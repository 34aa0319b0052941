// SPDX-License-Identifier: Apache-2.0
#include "client/cli/simulate/fabric.h"

#include <algorithm>
#include <utility>

namespace covey::cli {

Fabric::Fabric(const LinkOptions& options, std::vector<uint32_t> rack_of_node, uint32_t servers)
    : options_(options), rack_of_node_(std::move(rack_of_node)) {
  const auto speed = [](double bytes_per_second) {
    return Link{.seconds_per_byte = bytes_per_second > 0 ? 1 / bytes_per_second : 0,
                .free = absl::InfinitePast()};
  };
  const size_t racks =
      rack_of_node_.empty()
          ? 0
          : size_t{*std::max_element(rack_of_node_.begin(), rack_of_node_.end())} + 1;
  loop_free_.assign(rack_of_node_.size(), absl::InfinitePast());
  out_.assign(rack_of_node_.size(), speed(options.node_bytes_per_second));
  in_ = out_;
  up_.assign(racks, speed(options.uplink_bytes_per_second));
  down_ = up_;
  to_servers_ = speed(options.server_bytes_per_second * servers);
  from_servers_ = to_servers_;
  uplink_bytes_.assign(racks, 0);
  rack_count_.assign(racks, 0);
}

absl::Time Fabric::Pass(Link& link, absl::Time now, double bytes) {
  link.free = std::max(now, link.free) + absl::Seconds(bytes * link.seconds_per_byte);
  return link.free;
}

absl::Time Fabric::PassLoop(uint32_t node, absl::Time now) {
  loop_free_[node] = std::max(now, loop_free_[node]) + options_.message_time;
  return loop_free_[node];
}

absl::Time Fabric::Send(absl::Time now, uint32_t from, uint32_t to, double bytes) {
  const uint32_t source = rack_of_node_[from];
  const uint32_t target = rack_of_node_[to];
  // Latencies include the processing of one message in both loops when they are idle.
  now = PassLoop(from, now) - options_.message_time;
  absl::Time last = std::max(Pass(out_[from], now, bytes), Pass(in_[to], now, bytes));
  if (source == target) return last + (options_.rack_latency - options_.message_time);
  last = std::max(last, Pass(up_[source], now, bytes));
  last = std::max(last, Pass(down_[target], now, bytes));
  uplink_bytes_[source] += bytes;
  uplink_bytes_[target] += bytes;
  return last + (options_.uplink_latency - options_.message_time);
}

absl::Time Fabric::SendToServers(absl::Time now, uint32_t node, double bytes) {
  return AllSendToServers(now, {node}, bytes);
}

absl::Time Fabric::SendFromServers(absl::Time now, uint32_t node, double bytes) {
  return AllReceiveFromServers(now, {node}, bytes);
}

absl::Time Fabric::AllSendToServers(absl::Time now, const std::vector<uint32_t>& nodes,
                                    double bytes) {
  const double piece = bytes / static_cast<double>(nodes.size());
  absl::Time last = Pass(to_servers_, now, bytes);
  for (const uint32_t node : nodes) {
    last = std::max(last, Pass(out_[node], now, piece));
    ++rack_count_[rack_of_node_[node]];
  }
  for (const uint32_t node : nodes) {
    const uint32_t rack = rack_of_node_[node];
    const double share = piece * std::exchange(rack_count_[rack], 0);
    last = std::max(last, Pass(up_[rack], now, share));
    uplink_bytes_[rack] += share;
  }
  return last + options_.server_latency;
}

absl::Time Fabric::AllReceiveFromServers(absl::Time now, const std::vector<uint32_t>& nodes,
                                         double bytes) {
  const double piece = bytes / static_cast<double>(nodes.size());
  absl::Time last = Pass(from_servers_, now, bytes);
  for (const uint32_t node : nodes) {
    last = std::max(last, Pass(in_[node], now, piece));
    ++rack_count_[rack_of_node_[node]];
  }
  for (const uint32_t node : nodes) {
    const uint32_t rack = rack_of_node_[node];
    const double share = piece * std::exchange(rack_count_[rack], 0);
    last = std::max(last, Pass(down_[rack], now, share));
    uplink_bytes_[rack] += share;
  }
  return last + options_.server_latency;
}

}  // namespace covey::cli
