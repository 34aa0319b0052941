// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/wordnet/ranking.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::wordnet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RankingTest, CountsHigherScoresAndHalfOfEqualOnes) {
  const std::vector<float> scores = {5, 3, 3, 1, 3};
  EXPECT_EQ(RankOf(scores, 0, {}), 1);
  EXPECT_EQ(RankOf(scores, 1, {}), 3);  // one is higher, two are equal
  EXPECT_EQ(RankOf(scores, 3, {}), 5);
  const std::vector<float> equal(101, 0.0f);
  EXPECT_EQ(RankOf(equal, 7, {}), 51);
}

TEST(RankingTest, LeavesOtherRightAnswersOut) {
  const std::vector<float> scores = {5, 3, 3, 1, 3};
  const std::vector<uint32_t> known = {0, 1, 3, 4};
  EXPECT_EQ(RankOf(scores, 1, known), 1.5);
  EXPECT_EQ(RankOf(scores, 3, known), 2);
}

TEST(RankingTest, SumsRanks) {
  RankSums sums;
  for (const double rank : {1.0, 2.0, 10.0, 10.5}) sums.Add(rank);
  EXPECT_DOUBLE_EQ(sums.mrr(), (1 + 0.5 + 0.1 + 1 / 10.5) / 4);
  EXPECT_EQ(sums.hits_1(), 0.25);
  EXPECT_EQ(sums.hits_10(), 0.75);
  RankSums twice = sums;
  twice.Add(sums);
  EXPECT_EQ(twice.questions, 8);
  EXPECT_DOUBLE_EQ(twice.mrr(), sums.mrr());
  EXPECT_EQ(RankSums().mrr(), 0);
}

Graph SmallGraph() {
  Graph graph;
  graph.entities = {100, 101, 102};
  graph.training = {{0, 1, 1}, {0, 1, 2}};
  graph.validation = {{2, 1, 1}};
  graph.test = {{0, 7, 1}};
  return graph;
}

TEST(RankingTest, AFactGivesTwoQuestions) {
  const Graph graph = SmallGraph();
  const Question first = QuestionOf(graph.training, 1);
  EXPECT_EQ(first.entity, 0u);
  EXPECT_EQ(first.answer, 2u);
  EXPECT_FALSE(first.is_inverse);
  const Question inverse = QuestionOf(graph.training, 3);
  EXPECT_EQ(inverse.entity, 2u);
  EXPECT_EQ(inverse.answer, 0u);
  EXPECT_TRUE(inverse.is_inverse);
}

TEST(RankingTest, KnowsTheAnswersOfAllParts) {
  const KnownAnswers known(SmallGraph());
  EXPECT_THAT(known.Of({.entity = 0, .relation = 1}), ElementsAre(1, 2));
  EXPECT_THAT(known.Of({.entity = 1, .relation = 1, .is_inverse = true}), ElementsAre(0, 2));
  EXPECT_THAT(known.Of({.entity = 0, .relation = 7}), ElementsAre(1));
  EXPECT_THAT(known.Of({.entity = 1, .relation = 7}), IsEmpty());
}

// Row 14 of relations is that of relation 7, row 15 that of its inverse.
TEST(RankingTest, RanksByTheRowsOfRelationAndInverse) {
  const Graph graph = SmallGraph();
  const KnownAnswers known(graph);
  // One complex number each: 1, 2 and 3.
  const std::vector<float> entities = {1, 0, 2, 0, 3, 0};
  std::vector<float> relations(2 * 2 * kRelations.size());
  relations[2 * 14] = 1;
  relations[2 * 15] = -1;
  Ranker ranker(2, entities, relations, known);
  Ranking ranking;
  // By the relation, entity 2 scores highest, then 1; by its inverse 0.
  ranker.Rank(std::vector<Question>{{.entity = 0, .relation = 7, .answer = 1},
                                    {.entity = 1, .relation = 7, .is_inverse = true, .answer = 0}},
              ranking);
  EXPECT_EQ(ranking[7].questions, 2);
  EXPECT_EQ(ranking[7].reciprocal, 1.5);
  EXPECT_EQ(ranking[1].questions, 0);
  // More questions than are scored at once.
  ranker.Rank(std::vector<Question>(40, {.entity = 0, .relation = 7, .answer = 1}), ranking);
  EXPECT_EQ(ranking[7].questions, 42);
  EXPECT_EQ(ranking[7].reciprocal, 21.5);
}

}  // namespace
}  // namespace covey::wordnet
