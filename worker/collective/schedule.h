#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace covey::worker {

// Elements [first, first + count) of a tensor that one member is responsible for.
struct PartRange {
  size_t first = 0;
  size_t count = 0;

  friend bool operator==(const PartRange&, const PartRange&) = default;
};

// What a collective does with a tensor that is cut into one part per member (part i is member i's):
//   reduce-scatter  every member has all parts -> member i has the sum of part i
//   all-gather      member i has part i        -> every member has all parts
//   all-reduce      both, one after the other
//   broadcast       the root has the tensor    -> every member has it
//   barrier         no data: nobody leaves before everybody has come
enum class CollectiveKind { kReduceScatter, kAllGather, kAllReduce, kBroadcast, kBarrier };

// "all-reduce", for errors.
const char* CollectiveName(CollectiveKind kind);

// Whom to send what, when: member r hears from r - 1 and speaks to r + 1, wrapping. One rule covers
// every collective: what a member receives in hop h it combines with its own and sends on in hop h
// + 1, unless it is the last that needs it. Only hop 0 starts from a member's own data.
//
//   reduce-scatter of 3 members        hop 0      hop 1
//     part 0 (owner 0)                 1 -> 2     2 -> 0      so part i is summed in the order
//     part 1 (owner 1)                 2 -> 0     0 -> 1      i + 1, i + 2, ..., i
//     part 2 (owner 2)                 0 -> 1     1 -> 2
//
// Pure; immutable. Any number of members from 1; with 1 there are no hops.
class RingSchedule {
 public:
  struct Options {
    CollectiveKind kind = CollectiveKind::kBarrier;
    uint32_t rank = 0;
    uint32_t size = 1;  // members
    uint32_t root = 0;  // broadcast only
  };
  // Preconditions: rank < size, root < size.
  explicit RingSchedule(const Options& options);

  uint32_t hops() const { return hops_; }

  // The part that this member sends, or receives, in `hop`; nothing when it is not its turn. A
  // broadcast has the whole tensor as its part 0; a barrier has an empty part 0, the token.
  std::optional<uint32_t> SendPart(uint32_t hop) const;
  std::optional<uint32_t> ReceivePart(uint32_t hop) const;

  // True when what arrives in `hop` is to be added; false when it is to be taken as it is.
  bool Reduces(uint32_t hop) const;

 private:
  bool SpeaksIn(uint32_t rank, uint32_t hop) const;
  uint32_t PartSpoken(uint32_t rank, uint32_t hop) const;

  Options options_;
  uint32_t hops_ = 0;
};

// `element_count` elements cut into `size` parts that differ by at most one element, in order.
std::vector<PartRange> EvenParts(size_t element_count, uint32_t size);

}  // namespace covey::worker
