// SPDX-License-Identifier: Apache-2.0

// Rows of several sparse tables at once.

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/c/boundary.h"
#include "client/c/client_calls.h"
#include "client/c/covey.h"
#include "client/c/objects.h"
#include "common/base/status_macros.h"

namespace covey::c {
namespace {

absl::StatusOr<std::vector<client::RowsToPull>> PullsOf(const covey_rows_to_pull* tables,
                                                        size_t count) {
  std::vector<client::RowsToPull> all;
  const auto take = [&all](const covey_rows_to_pull& element) -> absl::Status {
    COVEY_ASSIGN_OR_RETURN(
        const auto given,
        OptionsOf<covey_rows_to_pull>(&element, "covey_rows_to_pull", COVEY_ROWS_TO_PULL_INIT));
    COVEY_RETURN_IF_ERROR(CheckRows(given.table, given.batch, given.rows, "rows", given.elements));
    all.push_back({.table = given.table->table,
                   .batch = given.batch->batch,
                   .rows = {given.rows, given.elements}});
    return absl::OkStatus();
  };
  COVEY_RETURN_IF_ERROR(ForEachOf(tables, count, "table", take));
  return all;
}

absl::StatusOr<std::vector<client::RowsToPush>> PushesOf(const covey_rows_to_push* tables,
                                                         size_t count) {
  std::vector<client::RowsToPush> all;
  const auto take = [&all](const covey_rows_to_push& element) -> absl::Status {
    COVEY_ASSIGN_OR_RETURN(
        const auto given,
        OptionsOf<covey_rows_to_push>(&element, "covey_rows_to_push", COVEY_ROWS_TO_PUSH_INIT));
    COVEY_RETURN_IF_ERROR(
        CheckRows(given.table, given.batch, given.gradient, "gradient", given.elements));
    all.push_back({.table = given.table->table,
                   .batch = given.batch->batch,
                   .gradient = {given.gradient, given.elements}});
    return absl::OkStatus();
  };
  COVEY_RETURN_IF_ERROR(ForEachOf(tables, count, "table", take));
  return all;
}

}  // namespace
}  // namespace covey::c

using covey::c::GuardClient;
using covey::c::NewHandle;
using covey::c::NotNull;
using covey::client::ParameterClient;

extern "C" {

covey_code covey_client_push_rows_many(covey_client* client, const covey_rows_to_push* tables,
                                       size_t count, const covey_push_options* options,
                                       covey_handle** handle, covey_error* error) {
  return GuardClient(client, error, [&](ParameterClient& parameters) -> absl::Status {
    if (count > 0) COVEY_RETURN_IF_ERROR(NotNull(tables, "tables"));
    COVEY_RETURN_IF_ERROR(NotNull(handle, "handle"));
    COVEY_ASSIGN_OR_RETURN(const auto all, covey::c::PushesOf(tables, count));
    COVEY_ASSIGN_OR_RETURN(const auto push, covey::c::PushOptionsOf(options));
    *handle = NewHandle(parameters.PushMany(all, push));
    return absl::OkStatus();
  });
}

covey_code covey_client_pull_rows_many(covey_client* client, const covey_rows_to_pull* tables,
                                       size_t count, const covey_pull_options* options,
                                       covey_handle** handle, covey_error* error) {
  return GuardClient(client, error, [&](ParameterClient& parameters) -> absl::Status {
    if (count > 0) COVEY_RETURN_IF_ERROR(NotNull(tables, "tables"));
    COVEY_RETURN_IF_ERROR(NotNull(handle, "handle"));
    COVEY_ASSIGN_OR_RETURN(const auto all, covey::c::PullsOf(tables, count));
    COVEY_ASSIGN_OR_RETURN(const auto pull, covey::c::PullOptionsOf(options));
    *handle = NewHandle(parameters.PullMany(all, pull));
    return absl::OkStatus();
  });
}

}  // extern "C"
