// SPDX-License-Identifier: Apache-2.0
#include "client/cli/rows/row_sorter.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <queue>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/console/text_file.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace covey::cli {
namespace {

constexpr size_t kRunBufferMin = 64 << 10;
constexpr size_t kWriteBytes = 4 << 20;

absl::Status RepeatedKey(uint64_t key) {
  return absl::DataLossError(absl::StrCat("key ", key, " came twice; read the rows again"));
}

}  // namespace

// Reads one run of the file from its beginning to its end.
class RowSorter::Run {
 public:
  Run(const RowSorter& sorter, uint64_t begin, uint64_t end, size_t buffer_bytes)
      : sorter_(sorter),
        next_(begin),
        end_(end),
        buffer_(std::max<size_t>(buffer_bytes / sorter.record_bytes(), 1) * sorter.record_bytes()) {
  }

  // Goes to the next row. False: there is none.
  absl::StatusOr<bool> Advance() {
    place_ += sorter_.record_bytes();
    if (place_ >= filled_) {
      if (next_ == end_) return false;
      filled_ = std::min<uint64_t>(buffer_.size(), end_ - next_);
      place_ = 0;
      for (size_t done = 0; done < filled_;) {
        const ssize_t read = pread(sorter_.file_, buffer_.data() + done, filled_ - done,
                                   static_cast<off_t>(next_ + done));
        if (read < 0 && errno == EINTR) continue;
        if (read <= 0) return sorter_.Failure("reading sorted rows in");
        done += static_cast<size_t>(read);
      }
      next_ += filled_;
    }
    std::memcpy(&key_, buffer_.data() + place_, sizeof(key_));
    return true;
  }
  uint64_t key() const { return key_; }
  void CopyRow(std::span<float> to) const {
    std::memcpy(to.data(), buffer_.data() + place_ + sizeof(key_), to.size_bytes());
  }

 private:
  const RowSorter& sorter_;
  uint64_t next_;  // in the file
  const uint64_t end_;
  std::vector<uint8_t> buffer_;
  size_t filled_ = 0;
  size_t place_ = 0;
  uint64_t key_ = 0;
};

RowSorter::RowSorter(const Options& options)
    : options_(options),
      // With each row, its place in the order.
      rows_max_(std::max<size_t>(
          options.memory_bytes / (record_bytes() + sizeof(std::pair<uint64_t, uint32_t>)), 1)) {
  COVEY_CHECK(options.width > 0);
}

RowSorter::~RowSorter() {
  if (file_ >= 0) close(file_);
}

absl::Status RowSorter::Failure(const char* doing) const {
  return absl::ErrnoToStatus(errno, absl::StrCat(doing, " ", options_.folder));
}

absl::Status RowSorter::Add(std::span<const uint64_t> keys, std::span<const float> rows) {
  COVEY_CHECK(rows.size() == keys.size() * options_.width);
  size_ += keys.size();
  while (!keys.empty()) {
    if (keys_.size() == rows_max_) COVEY_RETURN_IF_ERROR(Spill());
    const size_t count = std::min(keys.size(), rows_max_ - keys_.size());
    const size_t elements = count * options_.width;
    keys_.insert(keys_.end(), keys.begin(), keys.begin() + count);
    rows_.insert(rows_.end(), rows.begin(), rows.begin() + elements);
    keys = keys.subspan(count);
    rows = rows.subspan(elements);
  }
  return absl::OkStatus();
}

template <typename Visit>
absl::Status RowSorter::VisitSorted(const Visit& visit) {
  std::vector<std::pair<uint64_t, uint32_t>> order(keys_.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = {keys_[i], i};
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && order[i].first == order[i - 1].first) return RepeatedKey(order[i].first);
    COVEY_RETURN_IF_ERROR(visit(order[i].second));
  }
  return absl::OkStatus();
}

absl::Status RowSorter::Write(std::span<const uint8_t> bytes) {
  const absl::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!WriteAll(file_, text)) return Failure("writing sorted rows to");
  file_bytes_ += bytes.size();
  return absl::OkStatus();
}

absl::Status RowSorter::Spill() {
  if (file_ < 0) {
    std::string path = absl::StrCat(options_.folder, "/.rows-XXXXXX");
    file_ = mkostemp(path.data(), O_CLOEXEC);
    if (file_ < 0) return Failure("making a file for sorted rows in");
    unlink(path.c_str());
  }
  std::vector<uint8_t> buffer;
  buffer.reserve(kWriteBytes + record_bytes());
  COVEY_RETURN_IF_ERROR(VisitSorted([&](uint32_t i) -> absl::Status {
    const auto append = [&buffer](const void* from, size_t bytes) {
      const auto* const begin = static_cast<const uint8_t*>(from);
      buffer.insert(buffer.end(), begin, begin + bytes);
    };
    append(&keys_[i], sizeof(uint64_t));
    append(&rows_[i * options_.width], options_.width * sizeof(float));
    if (buffer.size() < kWriteBytes) return absl::OkStatus();
    const absl::Status written = Write(buffer);
    buffer.clear();
    return written;
  }));
  COVEY_RETURN_IF_ERROR(Write(buffer));
  runs_.push_back(file_bytes_);
  keys_.clear();
  rows_.clear();
  return absl::OkStatus();
}

absl::Status RowSorter::Sort(Take take) {
  if (runs_.empty()) {
    return VisitSorted([&](uint32_t i) {
      return take(keys_[i], std::span(rows_).subspan(i * options_.width, options_.width));
    });
  }
  if (!keys_.empty()) COVEY_RETURN_IF_ERROR(Spill());
  // The buffers of the runs take their place.
  std::vector<uint64_t>().swap(keys_);
  std::vector<float>().swap(rows_);
  return Merge(take);
}

absl::Status RowSorter::Merge(Take take) {
  const size_t buffer_bytes = std::max(options_.memory_bytes / runs_.size(), kRunBufferMin);
  std::vector<Run> runs;
  runs.reserve(runs_.size());
  using Head = std::pair<uint64_t, size_t>;  // key, run
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
  uint64_t begin = 0;
  for (const uint64_t end : runs_) {
    Run& run = runs.emplace_back(*this, std::exchange(begin, end), end, buffer_bytes);
    COVEY_ASSIGN_OR_RETURN(const bool has_row, run.Advance());
    if (has_row) heads.push({run.key(), runs.size() - 1});
  }
  std::vector<float> row(options_.width);
  bool is_first = true;
  for (uint64_t before = 0; !heads.empty(); is_first = false) {
    const auto [key, number] = heads.top();
    heads.pop();
    if (!is_first && key == before) return RepeatedKey(key);
    before = key;
    Run& run = runs[number];
    run.CopyRow(row);
    COVEY_RETURN_IF_ERROR(take(key, row));
    COVEY_ASSIGN_OR_RETURN(const bool has_more, run.Advance());
    if (has_more) heads.push({run.key(), number});
  }
  return absl::OkStatus();
}

}  // namespace covey::cli
