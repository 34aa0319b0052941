// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/repeated_field.h>

#include <string>

#include "common/table/row_reports.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// What the servers have reported about the rows of sparse tables. Pure.
RowsByTable RowsOf(const proto::StatusReply& status);
// For humans: a line for each sparse table of these; empty when there is none.
std::string RowsText(const google::protobuf::RepeatedPtrField<proto::Table>& tables,
                     const RowsByTable& rows);

}  // namespace covey::cli
