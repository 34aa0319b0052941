// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/wordnet/ranking.h"

#include <cblas.h>

#include <algorithm>

#include "common/base/check.h"
#include "worker/examples/wordnet/complex_model.h"

namespace covey::wordnet {
namespace {

// Questions whose scores of all entities are in memory at once.
constexpr size_t kQuestionsAtOnce = 16;

}  // namespace

Question QuestionOf(std::span<const Fact<uint32_t>> facts, size_t number) {
  COVEY_CHECK(number < 2 * facts.size());
  const bool is_inverse = number >= facts.size();
  const auto [head, relation, tail] = facts[is_inverse ? number - facts.size() : number];
  return {.entity = is_inverse ? tail : head,
          .relation = relation,
          .is_inverse = is_inverse,
          .answer = is_inverse ? head : tail};
}

KnownAnswers::KnownAnswers(const Graph& graph) {
  std::vector<Entry> entries;
  for (const auto* facts : {&graph.training, &graph.validation, &graph.test}) {
    for (const auto& [head, relation, tail] : *facts) {
      entries.push_back({.question = NumberOf(head, relation, false), .answer = tail});
      entries.push_back({.question = NumberOf(tail, relation, true), .answer = head});
    }
  }
  std::sort(entries.begin(), entries.end());
  for (const Entry& entry : entries) {
    questions_.push_back(entry.question);
    answers_.push_back(entry.answer);
  }
}

uint64_t KnownAnswers::NumberOf(uint32_t entity, uint32_t relation, bool is_inverse) {
  return uint64_t{entity} << 32 | RelationRow(relation, is_inverse);
}

std::span<const uint32_t> KnownAnswers::Of(const Question& question) const {
  const auto [first, last] =
      std::equal_range(questions_.begin(), questions_.end(),
                       NumberOf(question.entity, question.relation, question.is_inverse));
  return std::span(answers_).subspan(static_cast<size_t>(first - questions_.begin()),
                                     static_cast<size_t>(last - first));
}

double RankOf(std::span<const float> scores, uint32_t answer, std::span<const uint32_t> known) {
  const float own = scores[answer];
  int64_t higher = 0;
  int64_t same = -1;  // the answer itself
  for (const float score : scores) {
    higher += score > own ? 1 : 0;
    same += score == own ? 1 : 0;
  }
  for (const uint32_t other : known) {
    if (other == answer) continue;
    higher -= scores[other] > own ? 1 : 0;
    same -= scores[other] == own ? 1 : 0;
  }
  return 1 + static_cast<double>(higher) + static_cast<double>(same) / 2;
}

void RankSums::Add(double rank) {
  ++questions;
  reciprocal += 1 / rank;
  if (rank <= 1) ++first;
  if (rank <= 10) ++first_ten;
}

void RankSums::Add(const RankSums& more) {
  questions += more.questions;
  reciprocal += more.reciprocal;
  first += more.first;
  first_ten += more.first_ten;
}

Ranker::Ranker(size_t width, std::span<const float> entities, std::span<const float> relations,
               const KnownAnswers& known)
    : width_(width), entities_(entities), relations_(relations), known_(known) {
  openblas_set_num_threads(1);
}

void Ranker::Rank(std::span<const Question> questions, Ranking& ranking) {
  const size_t entities = entities_.size() / width_;
  const auto row = [this](auto rows, size_t i) { return rows.subspan(i * width_, width_); };
  for (size_t first = 0; first < questions.size(); first += kQuestionsAtOnce) {
    const auto some =
        questions.subspan(first, std::min(kQuestionsAtOnce, questions.size() - first));
    queries_.resize(some.size() * width_);
    scores_.resize(some.size() * entities);
    for (size_t i = 0; i < some.size(); ++i) {
      MakeQuery(row(entities_, some[i].entity),
                row(relations_, RelationRow(some[i].relation, some[i].is_inverse)),
                row(std::span(queries_), i));
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<int>(some.size()),
                static_cast<int>(entities), static_cast<int>(width_), 1, queries_.data(),
                static_cast<int>(width_), entities_.data(), static_cast<int>(width_), 0,
                scores_.data(), static_cast<int>(entities));
    for (size_t i = 0; i < some.size(); ++i) {
      const auto scores = std::span<const float>(scores_).subspan(i * entities, entities);
      ranking[some[i].relation].Add(RankOf(scores, some[i].answer, known_.Of(some[i])));
    }
  }
}

}  // namespace covey::wordnet
