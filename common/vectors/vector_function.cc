// SPDX-License-Identifier: Apache-2.0
#include "common/vectors/vector_function.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"

namespace covey {
namespace {

struct Requested {
  absl::string_view what;
  size_t count = 0;
  size_t count_max = 0;
};

absl::Status CheckCount(const Requested& requested, size_t vectors) {
  if (vectors == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the table is not one of vectors, and takes no ", requested.what,
                     "; create a dense table with optimizer VECTORS"));
  }
  if (requested.count >= 1 && requested.count <= requested.count_max) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the request has ", requested.count, " ",
                                                 requested.what, "; use 1 to ",
                                                 requested.count_max));
}

absl::Status CheckVector(uint32_t vector, size_t vectors) {
  if (vector < vectors) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("vector ", vector, " is none of the table's ",
                                                 vectors, "; choose one from 0 to ", vectors - 1));
}

}  // namespace

absl::Status CheckFunctions(std::span<const VectorFunction> functions, size_t vectors) {
  COVEY_RETURN_IF_ERROR(CheckCount({"functions", functions.size(), kVectorFunctionsMax}, vectors));
  for (const VectorFunction& function : functions) {
    COVEY_RETURN_IF_ERROR(CheckVector(function.target, vectors));
    if (function.has_source()) COVEY_RETURN_IF_ERROR(CheckVector(function.source, vectors));
    if (std::isfinite(static_cast<float>(function.scalar))) continue;
    return absl::InvalidArgumentError(absl::StrCat("the scalar of a function of vector ",
                                                   function.target, " is ", function.scalar,
                                                   "; use one that is finite in float32"));
  }
  return absl::OkStatus();
}

absl::Status CheckQueries(std::span<const VectorQuery> queries, size_t vectors) {
  COVEY_RETURN_IF_ERROR(CheckCount({"queries", queries.size(), kVectorQueriesMax}, vectors));
  uint64_t elements = 0;
  for (const VectorQuery& query : queries) {
    COVEY_RETURN_IF_ERROR(CheckVector(query.vector, vectors));
    if (query.kind == VectorQuery::Kind::kDot) {
      COVEY_RETURN_IF_ERROR(CheckVector(query.other, vectors));
    }
    if (query.kind == VectorQuery::Kind::kTop) elements += query.count;
  }
  if (elements <= kTopElementsMax) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the request asks for the ", elements,
                                                 " largest elements; ask for at most ",
                                                 kTopElementsMax, " at a time"));
}

}  // namespace covey
