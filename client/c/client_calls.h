// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/c/boundary.h"
#include "client/c/covey.h"
#include "client/c/objects.h"
#include "client/parameter_client.h"

// What the functions of a client share.
namespace covey::c {

// Runs `body` with the client, in the process that made it.
template <typename Body>
covey_code GuardClient(covey_client* client, covey_error* error, const Body& body) noexcept {
  return Guard(error, [&]() -> absl::Status {
    absl::Status status = NotNull(client, "client");
    if (status.ok()) status = client->creator.Check();
    if (!status.ok()) return status;
    return body(*client->client);
  });
}

// INVALID_ARGUMENT: the table is sparse, or the memory is not for so many times its elements.
absl::Status CheckMemory(const covey_table* table, const void* memory, absl::string_view argument,
                         uint64_t elements, uint64_t arrays = 1);

// INVALID_ARGUMENT: the memory is not for a row of the table for each key of the batch.
absl::Status CheckRows(const covey_table* table, const covey_batch* batch, const void* memory,
                       absl::string_view argument, uint64_t elements);

absl::StatusOr<client::PushOptions> PushOptionsOf(const covey_push_options* given);
absl::StatusOr<client::PullOptions> PullOptionsOf(const covey_pull_options* given);

}  // namespace covey::c
