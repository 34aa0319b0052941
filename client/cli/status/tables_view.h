// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/table/row_reports.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// The tables of parameters, as `covey tables` and `covey status` print them. Pure.

// The definitions, and the rows of sparse tables: for humans, and as JSON with the field names of
// the protocol.
std::string TablesText(const proto::ListTablesReply& tables, const RowsByTable& rows);
std::string TablesJson(const proto::ListTablesReply& tables, const RowsByTable& rows);
// For humans: definitions, use and replication.
std::string TablesInUseText(const proto::StatusReply& status);

}  // namespace covey::cli
