#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/cluster/ids.h"
#include "proto/log.pb.h"
#include "proto/table.pb.h"

namespace covey::scheduler {

// Which tables exist, and which server loops hold their shards at first; later: chains.h. Each
// change raises the epoch by one.
//
// Edits the view in `state`, which outlives it. Actor-confined, deterministic.
class Tables {
 public:
  explicit Tables(proto::LogRecord& state) : state_(state) {}

  struct Creation {
    TableId table;
    std::string decision = "";  // empty: an equal table existed, nothing changed
  };
  // Spreads the shards' heads over the data loops of all ALIVE servers (PlaceShards), and their
  // replicas over other servers: on other hosts, then racks, where labels tell, then by bytes.
  // Idempotent.
  // INVALID_ARGUMENT: bad spec. ALREADY_EXISTS: a table of this name has another spec.
  // RESOURCE_EXHAUSTED: too many tables or shards. UNAVAILABLE: no server. FAILED_PRECONDITION: it
  // asks for more replicas than there are servers.
  absl::StatusOr<Creation> Create(const proto::TableSpec& spec);

  // The decision. NOT_FOUND: no such table.
  absl::StatusOr<std::string> Drop(absl::string_view name);

  struct Switch {
    Epoch epoch;                // since which the contract is in force; 0 = from the beginning
    std::string decision = "";  // empty: it was in force already, nothing changed
  };
  // Changes how groups relate through a table in use; `why` is the evidence, for people. The table
  // stays the one that its spec describes. Idempotent. NOT_FOUND: no such table. INVALID_ARGUMENT:
  // the contract makes no sense, or is not allowed for this table: local is neither left nor
  // entered, and bsp needs a live group.
  absl::StatusOr<Switch> SetContract(absl::string_view name, const proto::Contract& contract,
                                     absl::string_view why);

 private:
  proto::LogRecord& state_;
};

}  // namespace covey::scheduler
