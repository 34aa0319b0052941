// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/engine/client_actor.h"
#include "common/runtime/actor.h"

namespace covey::client {

// The initial values that a node would give to a table whose initializer is GIVEN.
struct NamedValues {
  std::string table;  // TableSpec.name
  // As large as the table; valid until the initialization is done.
  std::span<const float> values;
};

// Gives tables their initial values, unless they have them or another node gives them:
//
//                 another node gives      epoch
//                ┌────────────────┐   ┌───────────▶ push the values under it
//                ▼                │   │                │
//   ask the scheduler ────────────┴───┤ ◀──────────────┘ all shards hold them, or the epoch is over
//                                     │
//                                     └───────────▶ done: all tables have their values
//
// `done` runs on the client's loop, exactly once, at the latest soon after the deadline. `given`:
// the tables that still waited have taken all of their values from this call. Errors: NOT_FOUND,
// FAILED_PRECONDITION: as InitializeTablesReply. UNAVAILABLE: another node has not ended before the
// deadline; names it. INVALID_ARGUMENT: values do not fit, or are not finite. As operations
// besides.
//
// `client` outlives the call. To be called on its loop.
void InitializeTables(
    absl::Time now, ClientActor& client, std::vector<NamedValues> tables, absl::Time deadline,
    std::function<void(absl::Time, const absl::Status& status, bool given, Outbox&)> done,
    Outbox& outbox);

}  // namespace covey::client
