// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>

#include "common/base/enum_map.h"
#include "common/table/row_life_cycle.h"
#include "proto/tensor.pb.h"

namespace covey {

inline constexpr EnumMap kEvictBy({
    std::pair(EvictBy::kAge, proto::EVICT_BY_AGE),
    std::pair(EvictBy::kCount, proto::EVICT_BY_COUNT),
    std::pair(EvictBy::kNorm, proto::EVICT_BY_NORM),
});
static_assert(kEvictBy.IsOneToOne() && kEvictBy.size() == proto::EvictBy_ARRAYSIZE);

// Nothing for a value of a newer version.
inline std::optional<EvictBy> EvictByFromProto(proto::EvictBy by) { return kEvictBy.ToOurs(by); }
inline proto::EvictBy EvictByToProto(EvictBy by) { return kEvictBy.ToTheirs(by); }

}  // namespace covey
