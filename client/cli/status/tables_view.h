// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "proto/scheduler.pb.h"

namespace covey::cli {

// The tables of parameters, as `covey tables` and `covey status` print them. Pure.

// What each table is. For humans, and the reply with the field names of the protocol.
std::string TablesText(const proto::ListTablesReply& tables);
std::string TablesJson(const proto::ListTablesReply& tables);
// Also how each table is used, and how far it is replicated.
std::string TablesInUseText(const proto::StatusReply& status);

}  // namespace covey::cli
