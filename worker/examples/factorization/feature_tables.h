// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "proto/table.pb.h"
#include "worker/examples/factorization/options.h"

namespace covey::factorization {

// The tables of a model, in which each feature has a row. They are the same on all workers, for
// `groups` is the number of groups that the job began with.

// Of one weight for each feature.
proto::TableSpec WeightsSpec(const Options& options, uint32_t groups);
// Of its factors. Precondition: the model has some.
proto::TableSpec FactorsSpec(const Options& options, uint32_t groups);

}  // namespace covey::factorization
