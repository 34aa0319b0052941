// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace covey::wordnet {

// ComplEx (Trouillon et al. 2016): entities and relations are vectors of complex numbers, and a
// fact scores Re(sum of head * relation * conjugate(tail)). A row has the real parts of a vector,
// and then its imaginary parts.
//
// Each relation has a second row for its inverse (Lacroix et al. 2018), so all questions are for a
// tail.

// The row of a relation for questions (head, relation, ?), or of its inverse for (tail, relation,
// ?).
constexpr uint64_t RelationRow(uint32_t relation, bool is_inverse) {
  return 2 * uint64_t{relation} + (is_inverse ? 1 : 0);
}

// query = head * relation, whose scores of tails are their inner products with it. All have the
// same, even size.
void MakeQuery(std::span<const float> head, std::span<const float> relation,
               std::span<float> query);

// A batch of questions with their answers, each as rows of `width` elements. The negatives are
// shared by all questions.
struct Questions {
  size_t width = 0;
  std::span<const float> heads;
  std::span<const float> relations;
  std::span<const float> answers;
  std::span<const float> negatives;
  // Which entities these rows are, to tell an answer among the negatives.
  std::span<const uint32_t> answer_ids;
  std::span<const uint32_t> negative_ids;
};

struct Gradients {
  std::span<float> heads;
  std::span<float> relations;
  std::span<float> answers;
  std::span<float> negatives;
};

struct Loss {
  // The negatives stand for this many entities.
  uint64_t entities = 0;
  // Coefficient of the sum of cubes of all absolute values in a fact (N3).
  double n3 = 0;
};

// Computes the gradients of a batch's summed loss: the cross-entropy of each answer among all
// entities, as the negatives represent them, and the regularizer. Keeps its memory between calls.
class ComplexModel {
 public:
  ComplexModel();

  // Returns the summed cross-entropy; the gradients are written over.
  double Compute(const Questions& questions, const Loss& loss, const Gradients& gradients);

 private:
  std::vector<float> queries_;
  std::vector<float> query_gradients_;
  std::vector<float> scores_;  // questions x negatives, then the gradient of each
};

}  // namespace covey::wordnet
