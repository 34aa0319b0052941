// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "proto/scheduler.pb.h"

namespace covey::cli {

// The tables of `covey status` about nodes and groups. Pure.

// All nodes, by role and rank.
std::string NodesText(const proto::StatusReply& status);
// A table of the workers in training: speed, and whom they wait for. "" when there are none.
std::string WorkersText(const proto::StatusReply& status);
std::string GroupsText(const proto::StatusReply& status);

}  // namespace covey::cli
