// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "proto/scheduler.pb.h"

namespace covey::cli {

// The tables of parameters, as `covey tables` and `covey status` print them. Pure.

// The definitions: for humans, and as JSON with the field names of the protocol.
std::string TablesText(const proto::ListTablesReply& tables);
std::string TablesJson(const proto::ListTablesReply& tables);
// For humans: definitions, use and replication.
std::string TablesInUseText(const proto::StatusReply& status);

}  // namespace covey::cli
