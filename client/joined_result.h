// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/operation_result.h"

namespace covey::client {

// Joins the results of operations that were started together, one for each of several tables. The
// status is the first error in the order of the tables, and names its table. The other fields are
// over all shards of all tables, and undefined after an error; `shard_versions` and `answers` stay
// empty. Actor-confined.
class JoinedResult {
 public:
  using Done = std::function<void(const OperationResult&)>;

  // The tables' names, at least one.
  JoinedResult(std::vector<std::string> tables, Done done);

  // The operation of tables[place] has ended; called once for each place. `done` is called with the
  // last one, since until then operations use their callers' memory.
  void End(size_t place, const OperationResult& result);

 private:
  const std::vector<std::string> tables_;
  const Done done_;
  size_t left_;
  std::optional<size_t> failed_;  // the first place whose operation has failed
  OperationResult joined_;
};

}  // namespace covey::client
