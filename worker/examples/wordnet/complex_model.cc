// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/wordnet/complex_model.h"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/check.h"

namespace covey::wordnet {
namespace {

// out = a * conjugate(b), for vectors of complex numbers.
void MultiplyByConjugate(std::span<const float> a, std::span<const float> b, std::span<float> out) {
  const size_t half = a.size() / 2;
  for (size_t i = 0; i < half; ++i) {
    out[i] = a[i] * b[i] + a[half + i] * b[half + i];
    out[half + i] = a[half + i] * b[i] - a[i] * b[half + i];
  }
}

// Adds the gradient of factor / 3 * the sum of cubes of absolute values.
void AddCubes(std::span<const float> values, float factor, std::span<float> gradient) {
  const size_t half = values.size() / 2;
  for (size_t i = 0; i < half; ++i) {
    const float scale =
        factor * std::sqrt(values[i] * values[i] + values[half + i] * values[half + i]);
    gradient[i] += scale * values[i];
    gradient[half + i] += scale * values[half + i];
  }
}

float InnerProduct(std::span<const float> a, std::span<const float> b) {
  return cblas_sdot(static_cast<int>(a.size()), a.data(), 1, b.data(), 1);
}

// Turns the scores of a question into the gradients of its cross-entropy, which it returns; that of
// the answer's score goes to `answer`.
double Softmax(std::span<float> scores, float* answer) {
  float highest = *answer;
  for (const float score : scores) highest = std::max(highest, score);
  const float own = *answer - highest;
  float sum = std::exp(own);
  *answer = sum;
  for (float& score : scores) {
    score = std::exp(score - highest);
    sum += score;
  }
  const float scale = 1 / sum;
  for (float& score : scores) score *= scale;
  *answer = *answer * scale - 1;
  return std::log(sum) - own;
}

}  // namespace

void MakeQuery(std::span<const float> head, std::span<const float> relation,
               std::span<float> query) {
  const size_t half = head.size() / 2;
  for (size_t i = 0; i < half; ++i) {
    query[i] = head[i] * relation[i] - head[half + i] * relation[half + i];
    query[half + i] = head[i] * relation[half + i] + head[half + i] * relation[i];
  }
}

ComplexModel::ComplexModel() {
  // The processes of a machine share its cores.
  openblas_set_num_threads(1);
}

double ComplexModel::Compute(const Questions& questions, const Loss& loss,
                             const Gradients& gradients) {
  const size_t width = questions.width;
  const size_t count = questions.answer_ids.size();
  const size_t negatives = questions.negative_ids.size();
  COVEY_CHECK(width % 2 == 0 && questions.heads.size() == count * width &&
              questions.relations.size() == count * width &&
              questions.answers.size() == count * width &&
              questions.negatives.size() == negatives * width);
  COVEY_CHECK(
      gradients.heads.size() == count * width && gradients.relations.size() == count * width &&
      gradients.answers.size() == count * width && gradients.negatives.size() == negatives * width);
  if (count == 0) {
    std::fill(gradients.negatives.begin(), gradients.negatives.end(), 0.0f);
    return 0;
  }
  queries_.resize(count * width);
  query_gradients_.resize(count * width);
  scores_.resize(count * negatives);
  const auto row = [width](auto rows, size_t i) { return rows.subspan(i * width, width); };
  for (size_t i = 0; i < count; ++i) {
    MakeQuery(row(questions.heads, i), row(questions.relations, i), row(std::span(queries_), i));
  }
  const auto m = static_cast<int>(count), n = static_cast<int>(negatives),
             k = static_cast<int>(width);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1, queries_.data(), k,
              questions.negatives.data(), k, 0, scores_.data(), n);

  const auto raise = static_cast<float>(
      std::log(static_cast<double>(loss.entities) / static_cast<double>(negatives)));
  double sum = 0;
  for (size_t i = 0; i < count; ++i) {
    const std::span<float> scores = std::span(scores_).subspan(i * negatives, negatives);
    for (size_t j = 0; j < negatives; ++j) {
      scores[j] = questions.negative_ids[j] == questions.answer_ids[i]
                      ? -std::numeric_limits<float>::infinity()
                      : scores[j] + raise;
    }
    const std::span<const float> query = row(std::span(queries_), i);
    const std::span<const float> answer = row(questions.answers, i);
    float slope = InnerProduct(query, answer);
    sum += Softmax(scores, &slope);
    const std::span<float> by_query = row(std::span(query_gradients_), i);
    const std::span<float> by_answer = row(gradients.answers, i);
    for (size_t d = 0; d < width; ++d) {
      by_query[d] = slope * answer[d];
      by_answer[d] = slope * query[d];
    }
  }
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, k, n, 1, scores_.data(), n,
              questions.negatives.data(), k, 1, query_gradients_.data(), k);
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, k, m, 1, scores_.data(), n,
              queries_.data(), k, 0, gradients.negatives.data(), k);

  const auto cubes = static_cast<float>(3 * loss.n3);
  for (size_t i = 0; i < count; ++i) {
    const std::span<const float> slope = row(std::span(query_gradients_), i);
    MultiplyByConjugate(slope, row(questions.relations, i), row(gradients.heads, i));
    MultiplyByConjugate(slope, row(questions.heads, i), row(gradients.relations, i));
    AddCubes(row(questions.heads, i), cubes, row(gradients.heads, i));
    AddCubes(row(questions.relations, i), cubes, row(gradients.relations, i));
    AddCubes(row(questions.answers, i), cubes, row(gradients.answers, i));
  }
  return sum;
}

}  // namespace covey::wordnet
