// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "proto/scheduler.pb.h"

namespace covey::cli {

// The parts of `covey status` about producers of pushes that are far larger than usual: those in
// quarantine, and those with pushes beyond the gate of a table (NormGate). Pure.

// One line for each producer in quarantine, with the evidence and how to release it.
std::vector<std::string> QuarantineLines(const proto::ClusterView& view);
// "Pushes beyond the gate": a line for each producer and table, with the figures of the shard where
// it has the most of them in a row; the one with the most first. "" when there are none.
std::string GatedText(const proto::StatusReply& status);

// "producer", "since_epoch", "reason" of each.
nlohmann::ordered_json QuarantinedJson(const proto::ClusterView& view);
// The lines of GatedText, all of them: "producer", "table", "shard", "shards", "pushes", "beyond",
// "beyond_in_row", "quarantine_after", "usual_norm", "usual_norm_of_others", "quarantined".
nlohmann::ordered_json GatedJson(const proto::StatusReply& status);

}  // namespace covey::cli
