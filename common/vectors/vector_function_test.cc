// SPDX-License-Identifier: Apache-2.0
#include "common/vectors/vector_function.h"

#include <limits>
#include <string>
#include <vector>

#include "common/cluster/limits.h"
#include "common/vectors/vector_proto.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using testing::HasSubstr;
using Function = VectorFunction::Kind;
using Query = VectorQuery::Kind;

std::string Refusal(const std::vector<VectorFunction>& functions, size_t vectors = 3) {
  return std::string(CheckFunctions(functions, vectors).message());
}

std::string Refusal(const std::vector<VectorQuery>& queries, size_t vectors = 3) {
  return std::string(CheckQueries(queries, vectors).message());
}

TEST(VectorFunctionTest, FunctionsAreRefusedByName) {
  EXPECT_EQ(Refusal({{.kind = Function::kAxpy, .target = 2, .source = 2, .scalar = 0.5}}), "");
  // A kind ignores what it does not name.
  EXPECT_EQ(Refusal({{.kind = Function::kSet, .target = 2, .source = 9}}), "");
  EXPECT_THAT(Refusal({{.kind = Function::kSet, .target = 3}}), HasSubstr("vector 3 is none"));
  EXPECT_THAT(Refusal({{.kind = Function::kCopy, .source = 3}}), HasSubstr("vector 3 is none"));
  EXPECT_THAT(Refusal({{.kind = Function::kScale, .scalar = 1e39}}), HasSubstr("is 1e+39"));
  EXPECT_THAT(Refusal({{.scalar = std::numeric_limits<double>::quiet_NaN()}}),
              HasSubstr("finite in float32"));
  EXPECT_THAT(Refusal({VectorFunction()}, 0), HasSubstr("not one of vectors"));
  EXPECT_THAT(Refusal(std::vector<VectorFunction>()), HasSubstr("has 0 functions"));
  EXPECT_EQ(Refusal(std::vector<VectorFunction>(kVectorFunctionsMax)), "");
  EXPECT_THAT(Refusal(std::vector<VectorFunction>(kVectorFunctionsMax + 1)),
              HasSubstr("has 257 functions"));
}

TEST(VectorFunctionTest, QueriesAreRefusedByName) {
  EXPECT_EQ(Refusal({{.kind = Query::kDot, .vector = 0, .other = 2}}), "");
  EXPECT_EQ(Refusal({{.kind = Query::kSum, .vector = 0, .other = 9}}), "");
  EXPECT_THAT(Refusal({{.kind = Query::kDot, .other = 3}}), HasSubstr("vector 3 is none"));
  EXPECT_THAT(Refusal({{.kind = Query::kMin, .vector = 4}}), HasSubstr("vector 4 is none"));
  EXPECT_THAT(Refusal(std::vector<VectorQuery>(kVectorQueriesMax + 1)),
              HasSubstr("has 257 queries"));
  EXPECT_THAT(Refusal({VectorQuery()}, 0), HasSubstr("not one of vectors"));
  const VectorQuery half = {.kind = Query::kTop, .count = kTopElementsMax / 2};
  EXPECT_EQ(Refusal({half, half}), "");
  EXPECT_THAT(Refusal({half, half, {.kind = Query::kTop, .count = 1}}), HasSubstr("1025 largest"));
  // Numbers of 32 bits do not wrap around.
  const VectorQuery all = {.kind = Query::kTop, .count = ~uint32_t{0}};
  EXPECT_THAT(Refusal({all, {.kind = Query::kTop, .count = 1}}), HasSubstr("4294967296 largest"));
}

TEST(VectorFunctionTest, TravelAsTheyAre) {
  const std::vector<VectorFunction> functions = {
      {.kind = Function::kSet, .target = 1, .scalar = -2.5},
      {.kind = Function::kScale, .target = 2, .scalar = 1e-30},
      {.kind = Function::kCopy, .target = 3, .source = 4},
      {.kind = Function::kAxpy, .target = 5, .source = 6, .scalar = 7}};
  ProtoFunctions sent;
  ToProto(functions, sent);
  EXPECT_EQ(FunctionsFromProto(sent).value(), functions);

  std::vector<VectorQuery> queries;
  for (int kind = 0; kind <= static_cast<int>(Query::kTop); ++kind) {
    queries.push_back({.kind = static_cast<Query>(kind), .vector = 1, .other = 2, .count = 3});
  }
  ProtoQueries asked;
  ToProto(queries, asked);
  EXPECT_EQ(QueriesFromProto(asked).value(), queries);

  const std::vector<VectorAnswer> answers = {
      {.value = 0.1}, {.value = 0, .top = {{.place = 1 << 20, .value = -3}, {.place = 5}}}};
  ProtoAnswers given;
  ToProto(answers, given);
  EXPECT_EQ(AnswersFromProto(given).value(), answers);
}

TEST(VectorFunctionTest, BytesOfOthersAreNotTrusted) {
  ProtoFunctions functions;
  functions.Add()->set_kind(static_cast<proto::VectorFunction::Kind>(17));
  EXPECT_THAT(std::string(FunctionsFromProto(functions).status().message()),
              HasSubstr("kind 17 is not known"));
  ProtoQueries queries;
  queries.Add()->set_kind(static_cast<proto::VectorQuery::Kind>(17));
  EXPECT_THAT(std::string(QueriesFromProto(queries).status().message()),
              HasSubstr("kind 17 is not known"));
  for (size_t i = 0; i < kVectorQueriesMax; ++i) queries.Add();
  EXPECT_THAT(std::string(QueriesFromProto(queries).status().message()), HasSubstr("257 queries"));
  ProtoAnswers answers;
  answers.Add()->add_places(1);
  EXPECT_FALSE(AnswersFromProto(answers).ok());
  answers.Mutable(0)->add_elements(1);
  EXPECT_TRUE(AnswersFromProto(answers).ok());
  for (size_t i = 0; i < kTopElementsMax; ++i) {
    answers.Mutable(0)->add_places(1);
    answers.Mutable(0)->add_elements(1);
  }
  EXPECT_FALSE(AnswersFromProto(answers).ok());
}

}  // namespace
}  // namespace covey
