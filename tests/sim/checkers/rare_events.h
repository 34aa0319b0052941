// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

#include "absl/strings/string_view.h"
#include "common/simulation/simulator.h"
#include "tests/sim/process/observer.h"

namespace covey::sim {

// Counts by name the events that faults are meant to cause, which tells whether the faults still
// reach the code. Reports no violations.
class RareEvents : public Observer {
 public:
  explicit RareEvents(Simulator& simulator) : simulator_(simulator) {}
  void OnSend(absl::Time now, const Message& message) override;

 private:
  void NoteView(const proto::ClusterView& view);

  Simulator& simulator_;
  uint64_t epoch_ = 0;
  std::map<uint64_t, int> node_states_;
  std::map<uint32_t, int> group_states_;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> generations_;
};

// Each of these happens in some seed of a thousand; otherwise the faults no longer reach the code.
inline constexpr absl::string_view kExpectedEvents[] = {
    "log_full",
    "log_io_error",
    "log_machine_restarted",
    "log_not_opened",
    "log_not_written",
    "log_slow",
    "log_torn",
    "examples_recalled",
    "fault_clog",
    "fault_corrupt",
    "fault_disconnect",
    "fault_isolate",
    "fault_kill",
    "fault_one_way_partition",
    "fault_partition",
    "fault_slow",
    "fault_stop",
    "forgery_in_anothers_name",
    "forgery_refused_aborted",
    "forgery_refused_invalid_argument",
    "forgery_refused_permission_denied",
    "forgery_refused_unavailable",
    "forgery_sent",
    "group_broke",
    "group_done",
    "inbox_full",
    "network_clogged",
    "network_corrupted",
    "network_damaged",
    "network_disconnected",
    "network_forgery_of_control_plane",
    "network_late_after_reconnect",
    "network_long_delay",
    "network_lost",
    "network_nowhere_to_go",
    "network_partitioned",
    "network_queue_full",
    "network_receiver_gone",
    "network_retried",
    "node_declared_dead",
    "node_left",
    "process_gave_up",
    "push_held",
    "push_repeated",
    "scheduler_recovered",
    "shard_lost",
    "shard_refused_aborted",
    "shard_refused_deadline_exceeded",
    "shard_refused_failed_precondition",
    "shard_refused_unavailable",
    "view_change_sent",
};

}  // namespace covey::sim
