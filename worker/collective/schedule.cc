#include "worker/collective/schedule.h"

#include "common/base/check.h"

namespace covey::worker {

const char* CollectiveName(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kReduceScatter:
      return "reduce-scatter";
    case CollectiveKind::kAllGather:
      return "all-gather";
    case CollectiveKind::kAllReduce:
      return "all-reduce";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kBarrier:
      return "barrier";
  }
  return "collective";
}

RingSchedule::RingSchedule(const Options& options) : options_(options) {
  COVEY_CHECK(options.rank < options.size && options.root < options.size);
  if (options.size == 1) return;
  switch (options.kind) {
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllGather:
    case CollectiveKind::kBroadcast:
      hops_ = options.size - 1;
      break;
    case CollectiveKind::kAllReduce:
      hops_ = 2 * (options.size - 1);
      break;
    case CollectiveKind::kBarrier:
      // Once around: everybody has come. Around again, but for the last hop: everybody may go.
      hops_ = 2 * options.size - 1;
      break;
  }
}

bool RingSchedule::SpeaksIn(uint32_t rank, uint32_t hop) const {
  if (hop >= hops_) return false;
  switch (options_.kind) {
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllGather:
    case CollectiveKind::kAllReduce:
      return true;
    case CollectiveKind::kBroadcast:
      return (rank + options_.size - options_.root) % options_.size == hop;
    case CollectiveKind::kBarrier:
      return hop % options_.size == rank;
  }
  return false;
}

uint32_t RingSchedule::PartSpoken(uint32_t rank, uint32_t hop) const {
  const uint32_t size = options_.size;
  switch (options_.kind) {
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllReduce:
      // Hop size - 1 of an all-reduce sends the member's own part, which the hop before has
      // completed.
      return (rank + 2 * size - 1 - hop % size) % size;
    case CollectiveKind::kAllGather:
      return (rank + size - hop) % size;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kBarrier:
      return 0;
  }
  return 0;
}

std::optional<uint32_t> RingSchedule::SendPart(uint32_t hop) const {
  if (!SpeaksIn(options_.rank, hop)) return std::nullopt;
  return PartSpoken(options_.rank, hop);
}

std::optional<uint32_t> RingSchedule::ReceivePart(uint32_t hop) const {
  const uint32_t previous = (options_.rank + options_.size - 1) % options_.size;
  if (!SpeaksIn(previous, hop)) return std::nullopt;
  return PartSpoken(previous, hop);
}

bool RingSchedule::Reduces(uint32_t hop) const {
  return options_.kind == CollectiveKind::kReduceScatter ||
         (options_.kind == CollectiveKind::kAllReduce && hop < options_.size - 1);
}

std::vector<PartRange> EvenParts(size_t element_count, uint32_t size) {
  std::vector<PartRange> parts(size);
  const size_t quotient = element_count / size;
  const size_t remainder = element_count % size;
  size_t first = 0;
  for (uint32_t i = 0; i < size; ++i) {
    parts[i] = {.first = first, .count = quotient + (i < remainder ? 1 : 0)};
    first += parts[i].count;
  }
  return parts;
}

}  // namespace covey::worker
