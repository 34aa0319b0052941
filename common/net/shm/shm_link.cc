// SPDX-License-Identifier: Apache-2.0
#include "common/net/shm/shm_link.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/buffer.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace covey {
namespace {

constexpr uint64_t kInline = std::numeric_limits<uint64_t>::max();

struct RecordHead {
  uint32_t head_bytes = 0;
  uint32_t frames = 0;
};

struct FrameEntry {
  uint64_t offset = kInline;
  uint64_t bytes = 0;
  uint32_t slot = 0;
  uint32_t generation = 0;
};

// The parts of a record are padded as the record is.
constexpr auto Padded = ShmRingWriter::Padded;

bool IsInline(const Buffer& frame) { return frame.size() <= kShmInlineFrameBytesMax; }

template <typename T>
T Load(std::span<const uint8_t> from) {
  T value;
  std::memcpy(&value, from.data(), sizeof(value));
  return value;
}

size_t RecordBytes(const Message& message, size_t head_bytes) {
  size_t bytes =
      sizeof(RecordHead) + message.frames.size() * sizeof(FrameEntry) + Padded(head_bytes);
  for (const Buffer& frame : message.frames) {
    if (IsInline(frame)) bytes += Padded(frame.size());
  }
  return bytes;
}

static_assert(sizeof(RecordHead) + kFramesMax * (sizeof(FrameEntry) + kShmInlineFrameBytesMax) +
                  kWirePreludeBytes + kDataEnvelopeBytesMax <=
              ShmRingWriter::PayloadMax(kShmRingBytes));

absl::Status BadRecord(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("a record of shared memory has ", what));
}

}  // namespace

ShmLink::ShmLink(ShmRegion own, PeerShmRegion peer, Descriptor wake_up, const WireLimits& limits)
    : limits_(limits),
      memory_(std::unique_ptr<Memory>(new Memory{
          .own = std::move(own), .peer = std::move(peer), .wake_up = std::move(wake_up)})),
      writer_(memory_->own.ring(), memory_->own.state().written, memory_->peer.state().read),
      reader_(memory_->peer.ring(), memory_->peer.state().written, memory_->own.state().read),
      frames_(kShmFrameSpaceBytes, memory_->peer.state().released) {
  COVEY_CHECK(limits.envelope_bytes <= kDataEnvelopeBytesMax &&
              limits.frame_bytes <= kFrameBytesMax && limits.frames <= kFramesMax);
}

void ShmLink::Memory::WakePeer() const {
  const uint64_t once = 1;
  [[maybe_unused]] const ssize_t bytes = write(wake_up.number(), &once, sizeof(once));
}

void ShmLink::Memory::NotifyOfRoom() {
  const uint32_t wants = peer.state().waits_for_room.load();
  if (wants % 2 == 1 && told_of_room.exchange(wants) != wants) WakePeer();
}

absl::StatusOr<bool> ShmLink::Send(const Message& message, size_t head_bytes) {
  COVEY_ASSIGN_OR_RETURN(bool sent, TrySend(message, head_bytes));
  std::atomic<uint32_t>& waits_for_room = memory_->own.state().waits_for_room;
  const uint32_t wants = waits_for_room.load(std::memory_order_relaxed);
  if (sent) {
    if (wants % 2 == 1) waits_for_room.store(wants + 1);
    return true;
  }
  // The peer may have made room before it could see this.
  waits_for_room.store(wants + (wants % 2 == 1 ? 2 : 1));
  return TrySend(message, head_bytes);
}

absl::StatusOr<bool> ShmLink::TrySend(const Message& message, size_t head_bytes) {
  COVEY_ASSIGN_OR_RETURN(std::span<uint8_t> record,
                         writer_.Reserve(RecordBytes(message, head_bytes)));
  if (record.empty() || !PlaceFrames(message)) return false;
  const auto write = [&record](const auto& value) {
    std::memcpy(record.data(), &value, sizeof(value));
    record = record.subspan(sizeof(value));
  };
  write(RecordHead{.head_bytes = static_cast<uint32_t>(head_bytes),
                   .frames = static_cast<uint32_t>(message.frames.size())});
  auto placed = placed_.begin();
  for (const Buffer& frame : message.frames) {
    FrameEntry entry{.bytes = frame.size()};
    if (!IsInline(frame)) {
      entry.offset = placed->offset;
      entry.slot = placed->use.slot;
      entry.generation = placed->use.generation;
      ++placed;
    }
    write(entry);
  }
  WriteHead(message, record.first(head_bytes));
  record = record.subspan(Padded(head_bytes));
  for (const Buffer& frame : message.frames) {
    if (!IsInline(frame) || frame.empty()) continue;
    std::memcpy(record.data(), frame.data(), frame.size());
    record = record.subspan(Padded(frame.size()));
  }
  writer_.Publish();
  const uint32_t sleep = memory_->peer.state().sleep.load();
  if (sleep % 2 == 1 && std::exchange(woken_from_, sleep) != sleep) memory_->WakePeer();
  return true;
}

bool ShmLink::PlaceFrames(const Message& message) {
  placed_.clear();
  for (const Buffer& frame : message.frames) {
    if (IsInline(frame)) continue;
    const std::optional<FrameSpace::Range> range = frames_.Take(frame.size());
    if (!range) {
      for (const FrameSpace::Range& taken : placed_) frames_.GiveBack(taken);
      return false;
    }
    placed_.push_back(*range);
  }
  auto placed = placed_.begin();
  for (const Buffer& frame : message.frames) {
    if (IsInline(frame)) continue;
    std::memcpy(&memory_->own.frames()[placed->offset], frame.data(), frame.size());
    ++placed;
  }
  return true;
}

absl::StatusOr<bool> ShmLink::Receive(Message& message) {
  COVEY_ASSIGN_OR_RETURN(const bool arrived, reader_.Next(record_));
  if (!arrived) return false;
  memory_->NotifyOfRoom();
  std::span<const uint8_t> rest = record_;
  if (rest.size() < sizeof(RecordHead)) return BadRecord("no head");
  const auto record = Load<RecordHead>(rest);
  rest = rest.subspan(sizeof(RecordHead));
  if (record.frames > limits_.frames) return BadRecord("too many frames");
  if (rest.size() < record.frames * sizeof(FrameEntry)) return BadRecord("too few frames");
  const auto entries = rest.first(record.frames * sizeof(FrameEntry));
  rest = rest.subspan(entries.size());
  if (rest.size() < Padded(record.head_bytes)) return BadRecord("a head that is cut off");
  const auto head = rest.first(record.head_bytes);
  // The peer is told that its frames are free even when the message is refused.
  COVEY_RETURN_IF_ERROR(ReadFrames(entries, rest.subspan(Padded(head.size())), message));
  absl::Status status = ReadHead(head, limits_, message.envelope);
  if (status.ok()) status = CheckFrames(message, limits_);
  if (!status.ok()) return absl::InvalidArgumentError(status.message());
  return true;
}

absl::Status ShmLink::ReadFrames(std::span<const uint8_t> entries, std::span<const uint8_t> bytes,
                                 Message& message) {
  const std::span<const uint8_t> region = memory_->peer.frames();
  for (; !entries.empty(); entries = entries.subspan(sizeof(FrameEntry))) {
    const auto entry = Load<FrameEntry>(entries);
    if (entry.offset == kInline) {
      if (entry.bytes > bytes.size()) return BadRecord("a small frame that is cut off");
      message.frames.push_back(Buffer::CopyOf(bytes.first(entry.bytes)));
      bytes = bytes.subspan(std::min(bytes.size(), Padded(entry.bytes)));
      continue;
    }
    if (entry.offset > region.size() || entry.bytes > region.size() - entry.offset ||
        entry.offset % alignof(std::max_align_t) != 0 || entry.bytes > limits_.frame_bytes ||
        entry.slot >= kShmFramesInUseMax) {
      return BadRecord("a frame that lies nowhere");
    }
    message.frames.push_back(
        FrameOfPeer(region.subspan(entry.offset, entry.bytes), {entry.slot, entry.generation}));
  }
  return absl::OkStatus();
}

Buffer ShmLink::FrameOfPeer(std::span<const uint8_t> bytes, const FrameSpace::Use& use) const {
  return Buffer::Lend(bytes.data(), bytes.size(), [memory = memory_, use] {
    memory->own.state().released[use.slot].store(use.generation);
    memory->NotifyOfRoom();
  });
}

bool ShmLink::FallAsleep() {
  sleep_ += asleep_ ? 2 : 1;
  memory_->own.state().sleep.store(sleep_);
  asleep_ = true;
  return !HasInput();
}

void ShmLink::Awake() {
  if (asleep_) memory_->own.state().sleep.store(++sleep_, std::memory_order_relaxed);
  asleep_ = false;
}

}  // namespace covey
