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

// Contenders "pull", "push" and "push_pull" of rows, in million rows per second, on a sparse table
// of a million rows of 16 elements, which is filled first. Each operation takes another batch of
// 10,000 random keys; a pull and a push_pull sort and divide it, and a push uses it as after a pull
// of the same keys. "pull, then push" does both in turns, as training does, and counts the rows of
// each; "pull, same keys" has one batch. "pull, zipf" reads keys of which few come often, and
// "pull, zipf, cached" the same through a RowCache of a tenth of the rows. Otherwise as
// MakeTableLoad; `options.bytes` is ignored.
absl::StatusOr<std::vector<Contender>> MakeRowLoad(
    const std::vector<std::unique_ptr<client::ParameterClient>>& clients, const Block& block,
    const TableLoadOptions& options);

}  // namespace covey::cli
