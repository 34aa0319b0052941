// SPDX-License-Identifier: Apache-2.0
#include "common/tensor/element_proto.h"

#include <iterator>
#include <utility>

#include "common/base/enum_map.h"

namespace covey {
namespace {

constexpr EnumMap kTypes({
    std::pair(ElementType::kFloat32, proto::ELEMENT_FLOAT32),
    std::pair(ElementType::kFloat64, proto::ELEMENT_FLOAT64),
    std::pair(ElementType::kInt32, proto::ELEMENT_INT32),
    std::pair(ElementType::kInt64, proto::ELEMENT_INT64),
    std::pair(ElementType::kByte, proto::ELEMENT_BYTE),
});
static_assert(kTypes.IsOneToOne());
static_assert(kTypes.size() == std::size(kElementTypes));
static_assert(kTypes.size() == proto::ElementType_ARRAYSIZE);

constexpr EnumMap kOps({
    std::pair(ReduceOp::kSum, proto::REDUCE_SUM),
    std::pair(ReduceOp::kProduct, proto::REDUCE_PRODUCT),
    std::pair(ReduceOp::kMin, proto::REDUCE_MIN),
    std::pair(ReduceOp::kMax, proto::REDUCE_MAX),
});
static_assert(kOps.IsOneToOne());
static_assert(kOps.size() == std::size(kReduceOps));
static_assert(kOps.size() == proto::ReduceOp_ARRAYSIZE);

}  // namespace

proto::ElementType ToProto(ElementType type) { return kTypes.ToTheirs(type); }
proto::ReduceOp ToProto(ReduceOp op) { return kOps.ToTheirs(op); }

}  // namespace covey
