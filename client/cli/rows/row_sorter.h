// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace covey::cli {

// Puts rows in the order of their keys within bounded memory, however many there are: sorted runs
// go to a file without a name, and are merged in the end (external merge sort). The file takes as
// much room as the rows, and goes with the process, however that ends.
//
// All block. Errors name the folder and the cause. Deterministic.
class RowSorter {
 public:
  struct Options {
    std::string folder;  // for the file
    size_t width = 0;    // elements of a row; at least 1
    // Of the rows that are sorted at a time. While runs are merged, at least 64 KiB for each.
    size_t memory_bytes = size_t{256} << 20;
  };
  using Take = absl::FunctionRef<absl::Status(uint64_t key, std::span<const float> row)>;

  explicit RowSorter(const Options& options);
  ~RowSorter();
  RowSorter(const RowSorter&) = delete;
  RowSorter& operator=(const RowSorter&) = delete;

  // `rows` has `width` elements for each key.
  absl::Status Add(std::span<const uint64_t> keys, std::span<const float> rows);
  uint64_t size() const { return size_; }
  // Runs that are in the file.
  size_t runs() const { return runs_.size(); }
  // Gives each row to `take`, ascending by key; a status that is not OK ends it, and is its result.
  // Called once, at last. DATA_LOSS: a key was added twice.
  absl::Status Sort(Take take);

 private:
  class Run;
  size_t record_bytes() const { return sizeof(uint64_t) + options_.width * sizeof(float); }
  // Sorts the rows in memory; calls visit(number) for each, ascending by key.
  template <typename Visit>
  absl::Status VisitSorted(const Visit& visit);
  // Writes the rows in memory to the file.
  absl::Status Spill();
  absl::Status Write(std::span<const uint8_t> bytes);
  absl::Status Merge(Take take);
  absl::Status Failure(const char* doing) const;

  const Options options_;
  const size_t rows_max_;  // in memory
  std::vector<uint64_t> keys_;
  std::vector<float> rows_;
  uint64_t size_ = 0;
  int file_ = -1;
  uint64_t file_bytes_ = 0;
  std::vector<uint64_t> runs_;  // where each ends in the file
};

}  // namespace covey::cli
