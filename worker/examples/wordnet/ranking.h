// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/examples/wordnet/graph.h"

namespace covey::wordnet {

// One of the two questions that a fact gives: (entity, relation, ?), or with `is_inverse` (?,
// relation, entity).
struct Question {
  uint32_t entity = 0;
  uint32_t relation = 0;
  bool is_inverse = false;
  uint32_t answer = 0;
};

// Question `number` of a list of facts: those for the tails, then those for the heads.
Question QuestionOf(std::span<const Fact<uint32_t>> facts, size_t number);

// All answers of a graph, so that ranks leave out the other right ones. Immutable.
class KnownAnswers {
 public:
  explicit KnownAnswers(const Graph& graph);

  // Ascending; with `answer` itself, if the graph has the fact.
  std::span<const uint32_t> Of(const Question& question) const;

 private:
  struct Entry {
    uint64_t question = 0;
    uint32_t answer = 0;
    auto operator<=>(const Entry&) const = default;
  };

  static uint64_t NumberOf(uint32_t entity, uint32_t relation, bool is_inverse);

  std::vector<uint64_t> questions_;  // ascending, each as often as it has answers
  std::vector<uint32_t> answers_;
};

// The rank of `answer` by its score, from 1: one more than the entities with a higher one, and half
// of those with the same; `known` are left out.
double RankOf(std::span<const float> scores, uint32_t answer, std::span<const uint32_t> known);

// Sums over questions: their number, that of their reciprocal ranks, and of ranks up to 1 and 10.
struct RankSums {
  double questions = 0;
  double reciprocal = 0;
  double first = 0;
  double first_ten = 0;

  void Add(double rank);
  void Add(const RankSums& more);

  // Means; 0 without questions.
  double mrr() const { return questions > 0 ? reciprocal / questions : 0; }
  double hits_1() const { return questions > 0 ? first / questions : 0; }
  double hits_10() const { return questions > 0 ? first_ten / questions : 0; }
};

// By relation.
using Ranking = std::array<RankSums, kRelations.size()>;

// Ranks the answers of questions among all entities, and adds the sums of each to `ranking`.
class Ranker {
 public:
  // `entities` and `relations`: rows of `width` elements; of relations as RelationRow has them.
  // References outlive this.
  Ranker(size_t width, std::span<const float> entities, std::span<const float> relations,
         const KnownAnswers& known);

  void Rank(std::span<const Question> questions, Ranking& ranking);

 private:
  const size_t width_;
  const std::span<const float> entities_;
  const std::span<const float> relations_;
  const KnownAnswers& known_;
  std::vector<float> queries_;
  std::vector<float> scores_;
};

}  // namespace covey::wordnet
