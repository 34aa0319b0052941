// SPDX-License-Identifier: Apache-2.0
#include "common/vectors/vector_proto.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/enum_map.h"
#include "common/cluster/limits.h"

namespace covey {
namespace {

constexpr EnumMap kFunctionKinds({
    std::pair(VectorFunction::Kind::kSet, proto::VectorFunction::SET),
    std::pair(VectorFunction::Kind::kScale, proto::VectorFunction::SCALE),
    std::pair(VectorFunction::Kind::kCopy, proto::VectorFunction::COPY),
    std::pair(VectorFunction::Kind::kAxpy, proto::VectorFunction::AXPY),
});
static_assert(kFunctionKinds.IsOneToOne() &&
              kFunctionKinds.size() == proto::VectorFunction::Kind_ARRAYSIZE);

constexpr EnumMap kQueryKinds({
    std::pair(VectorQuery::Kind::kDot, proto::VectorQuery::DOT),
    std::pair(VectorQuery::Kind::kNorm1, proto::VectorQuery::NORM1),
    std::pair(VectorQuery::Kind::kNorm2, proto::VectorQuery::NORM2),
    std::pair(VectorQuery::Kind::kNormMax, proto::VectorQuery::NORM_MAX),
    std::pair(VectorQuery::Kind::kSum, proto::VectorQuery::SUM),
    std::pair(VectorQuery::Kind::kMin, proto::VectorQuery::MIN),
    std::pair(VectorQuery::Kind::kMax, proto::VectorQuery::MAX),
    std::pair(VectorQuery::Kind::kNonZero, proto::VectorQuery::NON_ZERO),
    std::pair(VectorQuery::Kind::kTop, proto::VectorQuery::TOP),
});
static_assert(kQueryKinds.IsOneToOne() && kQueryKinds.size() == proto::VectorQuery::Kind_ARRAYSIZE);

absl::Status Unknown(absl::string_view what, int kind) {
  return absl::InvalidArgumentError(absl::StrCat(what, " of kind ", kind,
                                                 " is not known here; use one of parameter.proto, "
                                                 "or run servers of the client's version"));
}

absl::Status TooMany(absl::string_view what, int count, size_t count_max) {
  return absl::InvalidArgumentError(
      absl::StrCat("the message has ", count, " ", what, "; the most is ", count_max));
}

}  // namespace

absl::StatusOr<std::vector<VectorFunction>> FunctionsFromProto(const ProtoFunctions& from) {
  if (from.size() > static_cast<int>(kVectorFunctionsMax)) {
    return TooMany("functions", from.size(), kVectorFunctionsMax);
  }
  std::vector<VectorFunction> functions;
  for (const proto::VectorFunction& function : from) {
    const std::optional<VectorFunction::Kind> kind = kFunctionKinds.ToOurs(function.kind());
    if (!kind) return Unknown("a function", function.kind());
    functions.push_back({.kind = *kind,
                         .target = function.target(),
                         .source = function.source(),
                         .scalar = function.scalar()});
  }
  return functions;
}

absl::StatusOr<std::vector<VectorQuery>> QueriesFromProto(const ProtoQueries& from) {
  if (from.size() > static_cast<int>(kVectorQueriesMax)) {
    return TooMany("queries", from.size(), kVectorQueriesMax);
  }
  std::vector<VectorQuery> queries;
  for (const proto::VectorQuery& query : from) {
    const std::optional<VectorQuery::Kind> kind = kQueryKinds.ToOurs(query.kind());
    if (!kind) return Unknown("a query", query.kind());
    queries.push_back(
        {.kind = *kind, .vector = query.vector(), .other = query.other(), .count = query.count()});
  }
  return queries;
}

absl::StatusOr<std::vector<VectorAnswer>> AnswersFromProto(const ProtoAnswers& from) {
  if (from.size() > static_cast<int>(kVectorQueriesMax)) {
    return TooMany("answers", from.size(), kVectorQueriesMax);
  }
  std::vector<VectorAnswer> answers;
  for (const proto::VectorAnswer& answer : from) {
    const int elements = answer.elements_size();
    if (answer.places_size() != elements || elements > static_cast<int>(kTopElementsMax)) {
      return absl::InvalidArgumentError(absl::StrCat("an answer has ", answer.places_size(),
                                                     " places and ", elements, " elements"));
    }
    VectorAnswer& to = answers.emplace_back(VectorAnswer{.value = answer.value()});
    for (int i = 0; i < elements; ++i) {
      to.top.push_back({.place = answer.places(i), .value = answer.elements(i)});
    }
  }
  return answers;
}

void ToProto(std::span<const VectorFunction> from, ProtoFunctions& to) {
  for (const VectorFunction& function : from) {
    proto::VectorFunction& added = *to.Add();
    added.set_kind(kFunctionKinds.ToTheirs(function.kind));
    added.set_target(function.target);
    added.set_source(function.source);
    added.set_scalar(function.scalar);
  }
}

void ToProto(std::span<const VectorQuery> from, ProtoQueries& to) {
  for (const VectorQuery& query : from) {
    proto::VectorQuery& added = *to.Add();
    added.set_kind(kQueryKinds.ToTheirs(query.kind));
    added.set_vector(query.vector);
    added.set_other(query.other);
    added.set_count(query.count);
  }
}

void ToProto(std::span<const VectorAnswer> from, ProtoAnswers& to) {
  for (const VectorAnswer& answer : from) {
    proto::VectorAnswer& added = *to.Add();
    added.set_value(answer.value);
    for (const TopElement& element : answer.top) {
      added.add_places(element.place);
      added.add_elements(element.value);
    }
  }
}

}  // namespace covey
