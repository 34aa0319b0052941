// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/vectors/vector_function.h"
#include "proto/parameter.pb.h"

namespace covey {

// Functions, queries and answers as they travel. Pure. Numbers are not checked (CheckFunctions and
// CheckQueries do that), and no more is kept than a request may have. INVALID_ARGUMENT: a kind that
// this program does not know, more than a request may have, or an answer whose places and elements
// do not go together.
using ProtoFunctions = google::protobuf::RepeatedPtrField<proto::VectorFunction>;
using ProtoQueries = google::protobuf::RepeatedPtrField<proto::VectorQuery>;
using ProtoAnswers = google::protobuf::RepeatedPtrField<proto::VectorAnswer>;

absl::StatusOr<std::vector<VectorFunction>> FunctionsFromProto(const ProtoFunctions& from);
absl::StatusOr<std::vector<VectorQuery>> QueriesFromProto(const ProtoQueries& from);
absl::StatusOr<std::vector<VectorAnswer>> AnswersFromProto(const ProtoAnswers& from);

void ToProto(std::span<const VectorFunction> from, ProtoFunctions& to);
void ToProto(std::span<const VectorQuery> from, ProtoQueries& to);
void ToProto(std::span<const VectorAnswer> from, ProtoAnswers& to);

}  // namespace covey
