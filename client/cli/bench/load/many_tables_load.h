// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/bench/load/block.h"
#include "client/cli/bench/load/table_load.h"
#include "client/cli/bench/measure/turns.h"
#include "client/parameter_client.h"

namespace covey::cli {

// Steps of a recommender with 26 sparse tables: each pulls 128 rows of 16 elements from every table
// and pushes as many gradients to it. Contenders, in million rows pulled or pushed per second:
// "at once", where all operations are started before the first is waited for; "many", the same by
// PullMany and PushMany; "in turn", each operation waited for; and "one table", a pull and a push
// of as many rows of a single table, which bounds the others. "Pull, then push" waits for the rows
// before the gradients leave, as training does. Each step has other keys, which it sorts and
// divides. Otherwise as MakeTableLoad; `options.bytes` is ignored.
absl::StatusOr<std::vector<Contender>> MakeManyTablesLoad(
    const std::vector<std::unique_ptr<client::ParameterClient>>& clients, const Block& block,
    const TableLoadOptions& options);

}  // namespace covey::cli
