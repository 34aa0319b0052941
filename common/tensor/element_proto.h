// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/tensor/element_span.h"
#include "common/tensor/reduce_op.h"
#include "proto/tensor.pb.h"

namespace covey {

// Types of elements and operations as the enums of proto/tensor.proto. Pure.

proto::ElementType ToProto(ElementType type);
proto::ReduceOp ToProto(ReduceOp op);

}  // namespace covey
