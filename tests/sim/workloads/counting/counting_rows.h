// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "client/engine/requests/key_batch.h"
#include "proto/view.pb.h"

namespace covey::sim {

// How pushes count in a sparse table: the slot of a push is a column, and the push adds 1 there in
// the home row of each shard, and in some further rows, which depend on its slot only. So the home
// row of a shard shows the same as a whole shard of a dense table does, and each further row has to
// agree with the home row of its shard. All functions are pure.

// One key in each shard, by shard.
std::vector<uint64_t> HomeKeys(const proto::Table& table);
// The further keys of a push; some pushes have none. Many pushes share a key.
std::vector<uint64_t> FurtherKeys(uint64_t slot);
// All keys that any push may have.
std::vector<uint64_t> AllFurtherKeys();

std::shared_ptr<const KeyBatch> BatchOf(const proto::Table& table, std::span<const uint64_t> keys);
// The batch of the push that owns `slot`: the home keys and the further ones.
std::shared_ptr<const KeyBatch> BatchOfPush(const proto::Table& table, uint64_t slot);
// The gradient of that push, where an update is divided by `arrivals` samples. Where a key comes
// several times in the batch, its rows differ, so that their sum shows whether each counts once.
std::vector<float> RowsOfPush(const proto::Table& table, const KeyBatch& batch, size_t width,
                              uint64_t slot, uint64_t arrivals);

}  // namespace covey::sim
