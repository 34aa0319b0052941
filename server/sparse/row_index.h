// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/buffer.h"

namespace covey::server {

// Where a key's row is. An entry without a row is empty.
struct IndexEntry {
  uint64_t place = 0;  // the mixed key
  uint32_t row = 0;    // 0 = empty
  uint32_t stamp = 0;  // the caller's
};
static_assert(sizeof(IndexEntry) == 16);

// Maps places, which are 64 bits that look random, to rows.
//
//     directory, by the first bits          page of 4,096 homes, by the next 12 bits
//     ┌───┐                                 ┌────────────────────────┬───────┐
//     │ 00├────────────────────────────────▶│ entries, ascending     │ spare │
//     │ 01├──────────────┐                  └────────────────────────┴───────┘
//     │ 10├─▶ runs       └─▶ page
//     │ 11├─▶ page
//     └───┘
//
// A page is a hash table with linear probing in which the entries ascend by place. A lookup touches
// one or two cache lines, and one of a missing place ends at the first greater entry; removing an
// entry leaves no tombstone. A page that is full splits in two by the next bit, so the index grows
// without a pause: about 20 us for each 3,000 entries. Pages split at fills between 0.73 and 0.89
// that depend on the page, because all pages fill alike and would else split in one burst.
//
// Places that do not look random (keys can be chosen so) fill a page on one side. Such a page
// becomes sorted runs, which cost a binary search and never more memory than their entries; and the
// directory has at most 16 entries for each page.
//
// Not thread-safe. Deterministic: iteration ascends by place, whatever the order of insertion.
class RowIndex {
 public:
  RowIndex();
  ~RowIndex();
  RowIndex(const RowIndex&) = delete;

  size_t size() const { return size_; }
  size_t bytes() const;  // allocated
  size_t pages() const { return pages_; }
  size_t directory_size() const { return directory_.size(); }

  // Has the cache lines fetched that Find will touch.
  void Prefetch(uint64_t place) const;
  // Null when the place is missing. Right until the next insertion or removal. Where IsInPage(), it
  // may be looked at after that, too, as long as the index lives: it is empty then, or the entry of
  // this or of another place.
  const IndexEntry* Find(uint64_t place) const;
  IndexEntry* Find(uint64_t place) {
    return const_cast<IndexEntry*>(static_cast<const RowIndex*>(this)->Find(place));
  }
  // The entry of the place; a missing one is inserted with this row and stamp 0. Precondition:
  // new_row > 0.
  IndexEntry& FindOrInsert(uint64_t place, uint32_t new_row);
  // False: the place is missing.
  bool Erase(uint64_t place);
  // Whether the place has, or would have, its entry in a page, and not in a run.
  bool IsInPage(uint64_t place) const { return directory_[SlotOf(place)].page != nullptr; }

  // Calls visit(entry) for each entry from a place on, ascending, until it returns false. It must
  // not insert or remove.
  template <typename Visit>
  void VisitFrom(uint64_t place, const Visit& visit) const {
    const auto visit_rest = [&](const IndexEntry& entry) {
      return entry.place < place || visit(entry);
    };
    size_t i = SlotOf(place);
    i -= i % (size_t{1} << (depth_ - directory_[i].depth));  // its first entry of the directory
    for (; i < directory_.size(); i = NextBucket(i)) {
      if (!VisitBucket(directory_[i], visit_rest)) return;
    }
  }
  // Calls visit(entry) for all entries, likewise.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    VisitFrom(0, [&](const IndexEntry& entry) {
      visit(entry);
      return true;
    });
  }

 private:
  static constexpr size_t kHomes = 4096;
  static constexpr size_t kEntries = kHomes + 124;  // 31 pages fill a chunk of 2 MiB
  struct Page {
    // Four fill a cache line.
    alignas(64) IndexEntry entries[kEntries];
    uint32_t count = 0;
  };
  using Run = std::vector<IndexEntry>;
  // Ascending; no run is empty, but for the first.
  struct Runs {
    std::vector<Run> runs;
  };
  struct Bucket {
    Page* page = nullptr;  // null: `runs`
    Runs* runs = nullptr;
    uint32_t depth = 0;  // first bits that all its places have in common
  };

  static size_t HomeOf(uint64_t place, uint32_t depth) { return (place << depth) >> 52; }
  // The first entry from the home on that is empty or not less than the place.
  static size_t Seek(const Page& page, uint64_t place, uint32_t depth);
  static size_t LimitOf(uint64_t place, uint32_t depth);

  size_t SlotOf(uint64_t place) const { return place >> (64 - depth_); }
  size_t NextBucket(size_t i) const;
  // False: visit has returned false.
  template <typename Visit>
  static bool VisitBucket(const Bucket& bucket, const Visit& visit) {
    if (bucket.page != nullptr) {
      for (const IndexEntry& entry : bucket.page->entries) {
        if (entry.row != 0 && !visit(entry)) return false;
      }
      return true;
    }
    for (const Run& run : bucket.runs->runs) {
      for (const IndexEntry& entry : run) {
        if (!visit(entry)) return false;
      }
    }
    return true;
  }
  // Points the directory at a bucket, for all places that begin with the first `depth` bits of
  // `place`.
  void SetBucket(uint64_t place, const Bucket& bucket);
  // Splits the page that would hold the place, or makes runs of it.
  void Divide(uint64_t place);
  void MakeRuns(uint64_t place);
  // False: they do not fit, because too many are at the end of the page.
  static bool Fill(Page& page, uint32_t depth, const IndexEntry* first, const IndexEntry* last);
  // Empty.
  Page* NewPage();
  // The page is no longer part of the index. Its entries go, so that none is taken for one.
  void Retire(Page* page);

  std::vector<Bucket> directory_;  // 2^depth_ entries
  uint32_t depth_ = 1;
  size_t size_ = 0;
  size_t pages_ = 0;
  size_t run_bytes_ = 0;
  std::vector<Buffer> chunks_;  // of pages
  size_t chunk_pages_left_ = 0;
  std::vector<Page*> spare_pages_;  // empty
  std::vector<std::unique_ptr<Runs>> runs_;
  std::vector<IndexEntry> scratch_;
};

}  // namespace covey::server
