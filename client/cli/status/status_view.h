// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "proto/scheduler.pb.h"

namespace covey::cli {

// The output of `covey status`. Pure.

// The problems, one line each: dead nodes that were not replaced, broken groups, shards with fewer
// replicas than possible. Empty = healthy.
std::vector<std::string> Problems(const proto::StatusReply& status);

// Keeps the newest `count` events.
void KeepLastEvents(proto::StatusReply& status, size_t count);

// The first lines of StatusText: whether the job is healthy and what is not, what it waits for,
// what it may lose, producers in quarantine. Each ends with a newline.
std::string HealthText(const proto::StatusReply& status);
// For humans: HealthText, nodes by role, workers in training, groups, tables, pushes beyond the
// gates of tables, events.
std::string StatusText(const proto::StatusReply& status);
// The reply with the field names of the protocol, and "summary" beside them: "healthy", "problems",
// "alive", "dead", "left", "active_groups", "broken_groups", "done_groups", "waiting_for",
// "draining" (names), "failures" (each "node", "reason", "replaced"), "replication" (per table,
// "shards", "shards_short", "shards_nowhere", "replicas_joining", "whole", ...), "quarantined" and
// "gated" (gate_view.h).
std::string StatusJson(const proto::StatusReply& status);

}  // namespace covey::cli
