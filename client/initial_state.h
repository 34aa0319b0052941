// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace covey::client {

// The optimizer's state with which a table is to begin: what ParameterClient::PullState reads
// beside the values.
struct InitialState {
  // All slots of the table's optimizer, in its order, one after the other; each is as large as the
  // table.
  std::span<const float> slots;
  // Updates that have made the values: the table's first version. At most 2^61.
  uint64_t updates = 0;
  // Training examples in these updates, from which a learning rate's schedule goes on. At most
  // 2^61.
  uint64_t samples = 0;
};

}  // namespace covey::client
