// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/engine/control_requests.h"
#include "client/engine/request_engine.h"
#include "client/initial_state.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/runtime/actor.h"

namespace covey::client {

// The initial values that a call would give to a table whose initializer is GIVEN.
struct NamedValues {
  std::string table;  // TableSpec.name
  // As large as the table; valid and unchanged until the call has ended, as are the slots.
  std::span<const float> values;
  // Absent = the optimizer begins empty.
  std::optional<InitialState> state = {};
};

// What can be checked without the tables. INVALID_ARGUMENT: a table is named twice, there are more
// than kTablesMax, a value or a slot is not finite, or a count passes its limit; names the table
// and the element. Reads all values, so it does not belong on a loop. Pure.
absl::Status CheckNamedValues(std::span<const NamedValues> tables);

// INVALID_ARGUMENT: there are more or fewer values than elements of the table. Pure.
absl::Status CheckSize(const NamedValues& given, uint64_t elements);
// INVALID_ARGUMENT: a state has more or fewer elements than so many slots of the table, which are
// those of its optimizer. Precondition: CheckSize. Pure.
absl::Status CheckSlots(const NamedValues& given, size_t slots);

// The calls of this process that give tables their initial values, unless they have them or another
// call gives them:
//
//                 another call gives      epoch
//                ┌────────────────┐   ┌───────────▶ push the values under it
//                ▼                │   │                │
//   ask the scheduler ────────────┴───┤ ◀──────────────┘ all shards hold them, or the epoch is over
//                                     │
//                                     └───────────▶ done: all tables have their values
//
// A call that ends otherwise gives up its place: whenever the view says that a call of this node
// gives values, and that call is not under way, the scheduler is told so. That is repeated until
// the scheduler answers, and covers requests that arrive after the call has ended.
//
// Actor-confined. Deterministic.
class TableInitializations {
 public:
  // Runs on the loop, exactly once, at the latest soon after the deadline. `given`: the tables that
  // still waited have taken all of their values from this call. Errors: NOT_FOUND,
  // FAILED_PRECONDITION: as InitializeTablesReply. UNAVAILABLE: another call has not finished
  // before the deadline, and its node is named; or a shard was lost. INVALID_ARGUMENT: as
  // CheckNamedValues and CheckSize. As operations besides.
  using Done = std::function<void(absl::Time, const absl::Status& status, bool given, Outbox&)>;

  // Both outlive it.
  TableInitializations(RequestEngine& engine, ControlRequests& control)
      : engine_(engine), control_(control), view_(ClusterView::Empty()) {}
  TableInitializations(const TableInitializations&) = delete;

  // Precondition: the tables have passed CheckNamedValues; a server refuses what has not.
  void Start(absl::Time now, std::vector<NamedValues> tables, absl::Time deadline, Done done,
             Outbox& outbox);
  // After the engine has it. `self` is known after registration.
  void SetView(absl::Time now, NodeId self, std::shared_ptr<const ClusterView> view,
               Outbox& outbox);

 private:
  class Call;

  // Gives up the places of calls that have ended.
  void GiveUpEnded(absl::Time now, Outbox& outbox);

  RequestEngine& engine_;
  ControlRequests& control_;
  NodeId self_;
  std::shared_ptr<const ClusterView> view_;
  uint64_t next_call_ = 1;
  std::set<uint64_t> under_way_;  // calls
  std::set<uint64_t> giving_up_;  // calls that have ended, and the scheduler has not answered yet
};

}  // namespace covey::client
