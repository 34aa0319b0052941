// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "client/filter_rule.h"

namespace covey::client {

// Rows of gradients, by key.
struct KeyedRows {
  std::vector<uint64_t> keys;
  std::vector<float> rows;
};

// Decides which rows of each push go now, and holds the gradients of the others, their residuals,
// until they go: error feedback. No gradient is lost, none is sent twice.
//
// An optimizer that adds up the squares of gradients (FTRL, Adagrad) would add the square of the
// sum for gradients that are sent as one, which is up to as many times too large as they are. So a
// residual leaves in equal pieces, one with each push from then on: as many as bring the sum of
// their squares nearest to that of the gradients in it. Those that go to make room, or because all
// have to, go as one.
//
// Not thread-safe. Deterministic: what goes, and in which order, follows from the calls alone.
// Memory: 4 bytes for each element and about 60 more per residual.
class RowResiduals {
 public:
  struct Limits {
    // Residuals; beyond it the oldest go.
    size_t rows = 0;
    // 1 = a residual leaves as one.
    uint32_t pieces = 1;
  };
  // Rows of all pushes, each key of a push once.
  struct Counts {
    uint64_t pushed = 0;  // went with their own push
    uint64_t held_back = 0;
    uint64_t zero_pushed = 0;     // of `pushed`: the row was zero
    uint64_t zero_held_back = 0;  // of `held_back`
    uint64_t pushed_later = 0;    // rows of residuals that went without a gradient of their own
  };
  // The distinct keys of a mini-batch, and for each its row and the sum of its gradients.
  struct Batch {
    std::span<const uint64_t> keys;
    std::span<const float> rows;
    std::span<const float> gradients;
    uint64_t samples = 1;
  };

  // Preconditions: width and both limits are at least 1; limits.rows is below 2^32 - 1.
  RowResiduals(size_t width, const FilterRule& rule, const Limits& limits);

  size_t size() const { return number_of_.size(); }
  const Counts& counts() const { return counts_; }

  // Replaces `out` by the rows to push with the samples of the batch: first those of the batch, in
  // its order, that never waited, with the same bits. A key may come twice: the sum of its rows is
  // meant. Preconditions: equal numbers of keys and rows; gradients are finite.
  void Select(const Batch& batch, KeyedRows& out);
  // Replaces `out` by all residuals, each as one, the oldest first, to push with 1 sample. None is
  // left.
  void SelectAll(KeyedRows& out);

 private:
  struct Entry {
    uint64_t key = 0;
    uint32_t older = 0;
    uint32_t newer = 0;
    float squares = 0;         // of the gradients in the residual
    uint32_t pieces_left = 0;  // 0: it waits
  };

  std::span<float> Residual(uint32_t number) {
    return std::span(residuals_).subspan(number * width_, width_);
  }
  uint32_t Insert(uint64_t key);
  void Remove(uint32_t number);
  void Add(uint32_t number, std::span<const float> gradient);
  void LetLeave(uint32_t number);
  // Sends a piece of the residual, which is removed with its last one.
  void Send(uint32_t number, float samples, KeyedRows& out);
  // Sends residuals as they are, until this number is left.
  void SendOldest(size_t left, float samples, KeyedRows& out);
  void SendPieces(float samples, KeyedRows& out);

  const size_t width_;
  const FilterRule rule_;
  const Limits limits_;
  uint64_t pushes_ = 0;
  absl::flat_hash_map<uint64_t, uint32_t> number_of_;
  std::vector<Entry> entries_;
  std::vector<float> residuals_;  // of the entries; as the optimizer takes gradients
  std::vector<uint32_t> unused_;
  std::vector<uint32_t> leaving_;  // in the order in which they began to
  uint32_t oldest_;
  uint32_t newest_;
  std::vector<float> gradient_;
  std::vector<float> total_;
  Counts counts_;
};

}  // namespace covey::client
