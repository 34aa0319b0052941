// SPDX-License-Identifier: Apache-2.0
#include "server/sparse/row_index.h"

#include <algorithm>
#include <new>
#include <utility>

#include "common/base/check.h"
#include "common/base/random.h"
#include "server/table/row_memory.h"

namespace covey::server {
namespace {

// Entries of a run. A full one splits in two.
constexpr size_t kRunMax = 1024;
// Of the directory, for each page.
constexpr size_t kDirectoryShareMax = 16;
constexpr size_t kPagesPerChunkMax = 31;
constexpr size_t kEntriesPerLine = 64 / sizeof(IndexEntry);

bool IsBelow(const IndexEntry& entry, uint64_t place) { return entry.place < place; }

// The run that holds the place, if any does.
template <typename Runs>
auto RunOf(Runs& runs, uint64_t place) {
  const auto next =
      std::upper_bound(runs.begin() + 1, runs.end(), place,
                       [](uint64_t wanted, const auto& run) { return wanted < run.front().place; });
  return next - 1;
}

}  // namespace

RowIndex::RowIndex() : directory_(2) { SetBucket(0, {.page = NewPage(), .depth = 0}); }

RowIndex::~RowIndex() = default;

size_t RowIndex::bytes() const {
  size_t total = directory_.size() * sizeof(Bucket) + run_bytes_;
  for (const Buffer& chunk : chunks_) total += chunk.size();
  return total;
}

RowIndex::Page* RowIndex::NewPage() {
  static_assert(kPagesPerChunkMax * sizeof(Page) <= 2 << 20);
  ++pages_;
  if (!spare_pages_.empty()) {
    Page* const spare = spare_pages_.back();
    spare_pages_.pop_back();
    return spare;
  }
  if (chunk_pages_left_ == 0) {
    // A small table has a small index.
    chunk_pages_left_ =
        std::min(kPagesPerChunkMax, size_t{1} << std::min<size_t>(chunks_.size(), 6));
    const size_t bytes = chunk_pages_left_ == kPagesPerChunkMax ? 2 << 20  // one huge page
                                                                : chunk_pages_left_ * sizeof(Page);
    chunks_.push_back(ProcessRowMemory().NewChunk(bytes));
  }
  --chunk_pages_left_;
  return new (chunks_.back().MutableData() + chunk_pages_left_ * sizeof(Page)) Page();
}

void RowIndex::Retire(Page* page) {
  spare_pages_.push_back(new (page) Page());
  --pages_;
}

size_t RowIndex::Seek(const Page& page, uint64_t place, uint32_t depth) {
  size_t i = HomeOf(place, depth);
  while (i < kEntries && page.entries[i].row != 0 && page.entries[i].place < place) ++i;
  return i;
}

size_t RowIndex::LimitOf(uint64_t place, uint32_t depth) {
  const uint64_t prefix = depth == 0 ? 0 : place >> (64 - depth);
  return kHomes * (747 + MixBits(prefix ^ uint64_t{depth} << 56) % 164) / 1024;
}

void RowIndex::Prefetch(uint64_t place) const {
  const Bucket& bucket = directory_[SlotOf(place)];
  if (bucket.page != nullptr) {
    // Most lookups end in the line of their home, or in the next one.
    const IndexEntry* const home = &bucket.page->entries[HomeOf(place, bucket.depth)];
    __builtin_prefetch(home, 1);
    __builtin_prefetch(home + kEntriesPerLine, 1);
  }
}

const IndexEntry* RowIndex::Find(uint64_t place) const {
  const Bucket& bucket = directory_[SlotOf(place)];
  if (bucket.page != nullptr) {
    const size_t i = Seek(*bucket.page, place, bucket.depth);
    if (i == kEntries) return nullptr;
    const IndexEntry& found = bucket.page->entries[i];
    return found.row != 0 && found.place == place ? &found : nullptr;
  }
  const Run& run = *RunOf(bucket.runs->runs, place);
  const auto found = std::lower_bound(run.begin(), run.end(), place, IsBelow);
  return found != run.end() && found->place == place ? &*found : nullptr;
}

IndexEntry& RowIndex::FindOrInsert(uint64_t place, uint32_t new_row) {
  const IndexEntry inserted{.place = place, .row = new_row};
  for (;;) {
    const Bucket& bucket = directory_[SlotOf(place)];
    if (bucket.page == nullptr) break;
    Page& page = *bucket.page;
    const size_t i = Seek(page, place, bucket.depth);
    if (i < kEntries && page.entries[i].row != 0 && page.entries[i].place == place) {
      return page.entries[i];
    }
    size_t gap = i;
    while (gap < kEntries && page.entries[gap].row != 0) ++gap;
    if (gap < kEntries && page.count < LimitOf(place, bucket.depth)) {
      std::copy_backward(page.entries + i, page.entries + gap, page.entries + gap + 1);
      page.entries[i] = inserted;
      ++page.count;
      ++size_;
      return page.entries[i];
    }
    Divide(place);
  }
  std::vector<Run>& runs = directory_[SlotOf(place)].runs->runs;
  auto run = RunOf(runs, place);
  auto at = std::lower_bound(run->begin(), run->end(), place, IsBelow);
  if (at != run->end() && at->place == place) return *at;
  if (run->size() == kRunMax) {
    Run upper;
    upper.reserve(kRunMax);
    upper.assign(run->begin() + kRunMax / 2, run->end());
    run->resize(kRunMax / 2);
    run = runs.insert(run + 1, std::move(upper)) - 1;
    run_bytes_ += kRunMax * sizeof(IndexEntry);
    if (place >= (run + 1)->front().place) ++run;
    at = std::lower_bound(run->begin(), run->end(), place, IsBelow);
  }
  ++size_;
  return *run->insert(at, inserted);
}

bool RowIndex::Erase(uint64_t place) {
  IndexEntry* const found = Find(place);
  if (found == nullptr) return false;
  --size_;
  const Bucket& bucket = directory_[SlotOf(place)];
  if (bucket.page != nullptr) {
    // Every entry after it that is not at its home moves one back.
    Page& page = *bucket.page;
    size_t i = found - page.entries;
    for (; i + 1 < kEntries; ++i) {
      const IndexEntry& next = page.entries[i + 1];
      if (next.row == 0 || HomeOf(next.place, bucket.depth) == i + 1) break;
      page.entries[i] = next;
    }
    page.entries[i] = {};
    --page.count;
    return true;
  }
  std::vector<Run>& runs = bucket.runs->runs;
  const auto run = RunOf(runs, place);
  run->erase(run->begin() + (found - run->data()));
  if (run->empty() && run != runs.begin()) {
    runs.erase(run);
    run_bytes_ -= kRunMax * sizeof(IndexEntry);
  }
  return true;
}

size_t RowIndex::NextBucket(size_t i) const {
  return i + (size_t{1} << (depth_ - directory_[i].depth));
}

void RowIndex::SetBucket(uint64_t place, const Bucket& bucket) {
  const size_t covered = size_t{1} << (depth_ - bucket.depth);
  const size_t first = SlotOf(place) / covered * covered;
  std::fill_n(directory_.data() + first, covered, bucket);
}

bool RowIndex::Fill(Page& page, uint32_t depth, const IndexEntry* first, const IndexEntry* last) {
  size_t next = 0;
  for (const IndexEntry* entry = first; entry != last; ++entry) {
    next = std::max(next, HomeOf(entry->place, depth));
    if (next == kEntries) return false;
    page.entries[next++] = *entry;
  }
  page.count = last - first;
  return true;
}

void RowIndex::Divide(uint64_t place) {
  const Bucket full = directory_[SlotOf(place)];
  const uint32_t depth = full.depth + 1;
  scratch_.clear();
  VisitBucket(full, [&](const IndexEntry& entry) {
    scratch_.push_back(entry);
    return true;
  });
  const uint64_t bit = uint64_t{1} << (64 - depth);
  const uint64_t middle = (place & ~(bit - 1)) | bit;
  const IndexEntry* const first = scratch_.data();
  const IndexEntry* const last = first + scratch_.size();
  const IndexEntry* const half = std::lower_bound(first, last, middle, IsBelow);
  const size_t smaller = std::min(half - first, last - half);
  const bool must_double = depth > depth_;
  const bool may_double = directory_.size() * 2 <= kDirectoryShareMax * (pages_ + 1);
  // Places that look random divide evenly.
  if (smaller < scratch_.size() / 16 || (must_double && !may_double)) return MakeRuns(place);
  Page* const lower = NewPage();
  Page* const upper = NewPage();
  const bool fits = Fill(*lower, depth, first, half) && Fill(*upper, depth, half, last);
  if (!fits) {
    Retire(lower);
    Retire(upper);
    return MakeRuns(place);
  }
  if (must_double) {
    std::vector<Bucket> doubled(directory_.size() * 2);
    for (size_t i = 0; i < doubled.size(); ++i) doubled[i] = directory_[i / 2];
    directory_ = std::move(doubled);
    ++depth_;
  }
  SetBucket(middle - 1, {.page = lower, .depth = depth});
  SetBucket(middle, {.page = upper, .depth = depth});
  Retire(full.page);
}

// Precondition: scratch_ holds the entries of the page.
void RowIndex::MakeRuns(uint64_t place) {
  const Bucket full = directory_[SlotOf(place)];
  auto& made = runs_.emplace_back(std::make_unique<Runs>());
  for (size_t i = 0; i < scratch_.size() || i == 0; i += kRunMax / 2) {
    Run& run = made->runs.emplace_back();
    run.reserve(kRunMax);
    const size_t end = std::min(i + kRunMax / 2, scratch_.size());
    run.assign(scratch_.data() + i, scratch_.data() + end);
    run_bytes_ += kRunMax * sizeof(IndexEntry);
  }
  SetBucket(place, {.runs = made.get(), .depth = full.depth});
  Retire(full.page);
}

}  // namespace covey::server
