// SPDX-License-Identifier: Apache-2.0

// Gradients in factors, and what servers compute with the vectors of a table.

#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/c/boundary.h"
#include "client/c/client_calls.h"
#include "client/c/covey.h"
#include "client/c/objects.h"
#include "common/base/status_macros.h"
#include "common/vectors/vector_function.h"

namespace covey::c {
namespace {

// The kinds by their numbers in covey.h.
constexpr VectorFunction::Kind kFunctions[] = {
    VectorFunction::Kind::kSet, VectorFunction::Kind::kScale, VectorFunction::Kind::kCopy,
    VectorFunction::Kind::kAxpy};
constexpr VectorQuery::Kind kQueries[] = {
    VectorQuery::Kind::kDot,     VectorQuery::Kind::kNorm1,   VectorQuery::Kind::kNorm2,
    VectorQuery::Kind::kNormMax, VectorQuery::Kind::kSum,     VectorQuery::Kind::kMin,
    VectorQuery::Kind::kMax,     VectorQuery::Kind::kNonZero, VectorQuery::Kind::kTop};

template <typename Kind>
absl::StatusOr<Kind> KindOf(int32_t number, std::span<const Kind> kinds, absl::string_view field,
                            absl::string_view names) {
  if (number >= 0 && static_cast<size_t>(number) < kinds.size()) return kinds[number];
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", number, "; use a ", names, " number"));
}

absl::StatusOr<std::vector<VectorFunction>> FunctionsOf(const covey_vector_function* functions,
                                                        size_t count) {
  std::vector<VectorFunction> all;
  const auto take = [&all](const covey_vector_function& element) -> absl::Status {
    COVEY_ASSIGN_OR_RETURN(const auto given,
                           OptionsOf<covey_vector_function>(&element, "covey_vector_function",
                                                            COVEY_VECTOR_FUNCTION_INIT));
    COVEY_ASSIGN_OR_RETURN(
        const VectorFunction::Kind kind,
        KindOf<VectorFunction::Kind>(given.kind, kFunctions, "kind", "COVEY_FUNCTION_"));
    all.push_back(
        {.kind = kind, .target = given.target, .source = given.source, .scalar = given.scalar});
    return absl::OkStatus();
  };
  COVEY_RETURN_IF_ERROR(ForEachOf(functions, count, "function", take));
  return all;
}

absl::StatusOr<std::vector<VectorQuery>> QueriesOf(const covey_vector_query* queries,
                                                   size_t count) {
  std::vector<VectorQuery> all;
  const auto take = [&all](const covey_vector_query& element) -> absl::Status {
    COVEY_ASSIGN_OR_RETURN(
        const auto given,
        OptionsOf<covey_vector_query>(&element, "covey_vector_query", COVEY_VECTOR_QUERY_INIT));
    COVEY_ASSIGN_OR_RETURN(const VectorQuery::Kind kind,
                           KindOf<VectorQuery::Kind>(given.kind, kQueries, "kind", "COVEY_QUERY_"));
    all.push_back(
        {.kind = kind, .vector = given.vector, .other = given.other, .count = given.count});
    return absl::OkStatus();
  };
  COVEY_RETURN_IF_ERROR(ForEachOf(queries, count, "query", take));
  return all;
}

absl::StatusOr<client::OuterProducts> FactorsOf(const covey_table* table,
                                                const covey_outer_products* gradient) {
  COVEY_RETURN_IF_ERROR(NotNull(table, "table"));
  COVEY_RETURN_IF_ERROR(NotNull(gradient, "gradient"));
  COVEY_ASSIGN_OR_RETURN(
      const auto given,
      OptionsOf<covey_outer_products>(gradient, "covey_outer_products", COVEY_OUTER_PRODUCTS_INIT));
  if (given.left_elements > 0) COVEY_RETURN_IF_ERROR(NotNull(given.left, "left"));
  if (given.right_elements > 0) COVEY_RETURN_IF_ERROR(NotNull(given.right, "right"));
  return client::OuterProducts{.terms = given.terms,
                               .left = {given.left, given.left_elements},
                               .right = {given.right, given.right_elements}};
}

// The answer to one query of an operation that has succeeded.
absl::StatusOr<VectorAnswer> AnswerOf(const covey_handle* handle, size_t query) {
  COVEY_RETURN_IF_ERROR(NotNull(handle, "handle"));
  COVEY_RETURN_IF_ERROR(handle->creator.Check());
  if (!handle->handle.done()) {
    return absl::FailedPreconditionError("the operation is in progress; wait for it first");
  }
  client::OperationResult result = handle->handle.result();
  COVEY_RETURN_IF_ERROR(result.status);
  if (query < result.answers.size()) return std::move(result.answers[query]);
  return absl::InvalidArgumentError(
      absl::StrCat("the operation has ", result.answers.size(), " answers, and none of number ",
                   query, "; count them from 0, and start it with covey_client_ask"));
}

}  // namespace
}  // namespace covey::c

using covey::c::AnswerOf;
using covey::c::CheckMemory;
using covey::c::Guard;
using covey::c::GuardClient;
using covey::c::NewHandle;
using covey::c::NotNull;
using covey::client::ParameterClient;

extern "C" {

covey_code covey_client_push_outer_products(covey_client* client, const covey_table* table,
                                            const covey_outer_products* gradient,
                                            const covey_push_options* options,
                                            covey_handle** handle, covey_error* error) {
  return GuardClient(client, error, [&](ParameterClient& parameters) -> absl::Status {
    COVEY_ASSIGN_OR_RETURN(const auto factors, covey::c::FactorsOf(table, gradient));
    COVEY_RETURN_IF_ERROR(NotNull(handle, "handle"));
    COVEY_ASSIGN_OR_RETURN(const auto push, covey::c::PushOptionsOf(options));
    *handle = NewHandle(parameters.Push(table->table, factors, push));
    return absl::OkStatus();
  });
}

covey_code covey_client_push_pull_outer_products(covey_client* client, const covey_table* table,
                                                 const covey_outer_products* gradient,
                                                 float* values, uint64_t elements,
                                                 const covey_push_options* push,
                                                 const covey_pull_options* pull,
                                                 covey_handle** handle, covey_error* error) {
  return GuardClient(client, error, [&](ParameterClient& parameters) -> absl::Status {
    COVEY_ASSIGN_OR_RETURN(const auto factors, covey::c::FactorsOf(table, gradient));
    COVEY_RETURN_IF_ERROR(CheckMemory(table, values, "values", elements));
    COVEY_RETURN_IF_ERROR(NotNull(handle, "handle"));
    COVEY_ASSIGN_OR_RETURN(const auto push_options, covey::c::PushOptionsOf(push));
    COVEY_ASSIGN_OR_RETURN(const auto pull_options, covey::c::PullOptionsOf(pull));
    *handle = NewHandle(
        parameters.PushPull(table->table, factors, {values, elements}, push_options, pull_options));
    return absl::OkStatus();
  });
}

uint64_t covey_table_vectors(const covey_table* table) {
  return table == nullptr ? 0 : table->table.vectors;
}

covey_code covey_client_call(covey_client* client, const covey_table* table,
                             const covey_vector_function* functions, size_t count, double seconds,
                             covey_handle** handle, covey_error* error) {
  return GuardClient(client, error, [&](ParameterClient& parameters) -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(table, "table"));
    COVEY_RETURN_IF_ERROR(NotNull(functions, "functions"));
    COVEY_RETURN_IF_ERROR(NotNull(handle, "handle"));
    COVEY_ASSIGN_OR_RETURN(auto all, covey::c::FunctionsOf(functions, count));
    COVEY_ASSIGN_OR_RETURN(const absl::Duration deadline, covey::c::DeadlineOf(seconds));
    *handle = NewHandle(parameters.Call(table->table, std::move(all), {.deadline = deadline}));
    return absl::OkStatus();
  });
}

covey_code covey_client_ask(covey_client* client, const covey_table* table,
                            const covey_vector_query* queries, size_t count,
                            const covey_pull_options* options, covey_handle** handle,
                            covey_error* error) {
  return GuardClient(client, error, [&](ParameterClient& parameters) -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(table, "table"));
    COVEY_RETURN_IF_ERROR(NotNull(queries, "queries"));
    COVEY_RETURN_IF_ERROR(NotNull(handle, "handle"));
    COVEY_ASSIGN_OR_RETURN(auto all, covey::c::QueriesOf(queries, count));
    COVEY_ASSIGN_OR_RETURN(const auto pull, covey::c::PullOptionsOf(options));
    *handle = NewHandle(parameters.Ask(table->table, std::move(all), pull));
    return absl::OkStatus();
  });
}

covey_code covey_handle_answer(const covey_handle* handle, size_t query,
                               covey_vector_answer* answer, covey_error* error) {
  return Guard(error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(answer, "answer"));
    COVEY_ASSIGN_OR_RETURN(const covey::VectorAnswer found, AnswerOf(handle, query));
    covey::c::Return({.value = found.value, .top_count = found.top.size()}, answer);
    return absl::OkStatus();
  });
}

covey_code covey_handle_top(const covey_handle* handle, size_t query, uint64_t* places,
                            float* values, size_t count, covey_error* error) {
  return Guard(error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(places, "places"));
    COVEY_RETURN_IF_ERROR(NotNull(values, "values"));
    COVEY_ASSIGN_OR_RETURN(const covey::VectorAnswer found, AnswerOf(handle, query));
    if (count != found.top.size()) {
      return absl::InvalidArgumentError(absl::StrCat("the answer has ", found.top.size(),
                                                     " elements, and there is room for ", count,
                                                     "; ask covey_handle_answer for their number"));
    }
    for (size_t i = 0; i < count; ++i) {
      places[i] = found.top[i].place;
      values[i] = found.top[i].value;
    }
    return absl::OkStatus();
  });
}

}  // extern "C"
