#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/cluster/ids.h"

namespace covey {

// How groups relate through a table: pure policy, shared by clients, servers and the simulator.
// Immutable value.
struct Contract {
  enum class Kind { kBsp, kSsp, kAsync, kBuffered };
  Kind kind = Kind::kBuffered;
  // kSsp: how many steps a group may run ahead of the slowest live one.
  uint64_t staleness = 0;
  // kBuffered: arrivals per update; 0 = number of live groups.
  uint64_t buffer = 0;

  friend bool operator==(const Contract&, const Contract&) = default;

  // Step that every live group must have reached before a reader that has finished `step` gets its
  // answer; nothing when the contract does not gate. bsp: step; ssp(s): step - s. Equation: Ho et
  // al. 2013, "a worker at clock c sees all updates of clock <= c - s - 1", with our steps counted
  // from 1.
  std::optional<Step> RequiredStep(Step step) const;
};

// "bsp", "ssp:2", "async", "buffered", "buffered:4".
// INVALID_ARGUMENT: anything else; the message lists what is known.
absl::StatusOr<Contract> ParseContract(absl::string_view text);
std::string ContractName(const Contract& contract);

}  // namespace covey
