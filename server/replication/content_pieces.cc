// SPDX-License-Identifier: Apache-2.0
#include "server/replication/content_pieces.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/net/frame_checksum.h"

namespace covey::server {
namespace {

// Largest size of all parts of a record together: kProducersPerShardMax producers with full
// windows.
constexpr uint64_t kRecordBytesMax = uint64_t{kProducersPerShardMax} * kDedupWindow * 20;

}  // namespace

ContentExport::ContentExport(const ShardContent& content)
    : index_(content.index()), version_(content.version().value()), samples_(content.samples()) {
  CutUp(content.Values(), proto::ReplicaPiece::VALUES, 0);
  for (uint32_t slot = 0; slot < content.slots(); ++slot) {
    CutUp(Buffer::CopyOf(content.Slot(slot).bytes()), proto::ReplicaPiece::SLOT, slot);
  }
  for (const proto::ReplicaRecord& record : content.DescribeRecord()) {
    const std::string bytes = record.SerializeAsString();
    pieces_.push_back(
        {.kind = proto::ReplicaPiece::RECORD,
         .frame = Buffer::CopyOf({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}),
         .checksum = {}});
  }
}

void ContentExport::CutUp(const Buffer& elements, proto::ReplicaPiece::Kind kind, uint32_t slot) {
  for (size_t offset = 0; offset < elements.size(); offset += kReplicaPieceBytesMax) {
    const size_t size = std::min(kReplicaPieceBytesMax, elements.size() - offset);
    pieces_.push_back({.kind = kind,
                       .slot = slot,
                       .first = offset / sizeof(float),
                       .frame = elements.Slice(offset, size),
                       .checksum = {}});
  }
}

Message ContentExport::Piece(uint64_t number) {
  Cut& cut = pieces_[number];
  Message message;
  proto::ReplicaPiece& piece = *message.envelope.mutable_replica_piece();
  piece.set_index(index_);
  piece.set_version(version_);
  piece.set_samples(samples_);
  piece.set_piece(number);
  piece.set_pieces(pieces_.size());
  piece.set_kind(cut.kind);
  piece.set_slot(cut.slot);
  piece.set_first(cut.first);
  if (!cut.checksum) cut.checksum = FrameChecksum(cut.frame);
  AddFrame(message, cut.frame, *cut.checksum);
  return message;
}

Message ContentExport::Query(uint64_t number) const {
  Message message;
  proto::ReplicaPiece& piece = *message.envelope.mutable_replica_piece();
  piece.set_index(index_);
  piece.set_piece(number);
  piece.set_pieces(pieces_.size());
  return message;
}

ContentImport::ContentImport(std::unique_ptr<ShardContent> content)
    : content_(std::move(content)) {}

void ContentImport::Restart() {
  next_ = 0;
  element_bytes_ = 0;
  record_bytes_ = 0;
  records_.clear();
}

absl::StatusOr<bool> ContentImport::Add(absl::Time now, const Message& message) {
  const proto::ReplicaPiece& piece = message.envelope.replica_piece();
  if (next_ != 0 && piece.index() != index_) Restart();
  if (piece.piece() != next_) return false;
  absl::Status status =
      message.frames.size() == 1 && piece.pieces() > piece.piece() &&
              (next_ == 0 || piece.pieces() == pieces_)
          ? Take(piece, message.frames[0])
          : absl::InvalidArgumentError(absl::StrCat("piece ", piece.piece(), " of ", piece.pieces(),
                                                    " does not continue the content"));
  if (status.ok() && ++next_ == pieces_) {
    const uint64_t wanted = content_->bytes();
    status = element_bytes_ != wanted
                 ? absl::InvalidArgumentError(absl::StrCat(
                       "the content ends after ", element_bytes_, " of ", wanted, " bytes"))
                 : content_->Restore(now, index_, piece.version(), piece.samples(),
                                     std::move(values_), std::move(slots_), records_);
    if (status.ok()) return true;
  }
  if (status.ok()) return false;
  Restart();
  return status;
}

absl::Status ContentImport::Take(const proto::ReplicaPiece& piece, const Buffer& frame) {
  if (next_ == 0) {
    index_ = piece.index();
    pieces_ = piece.pieces();
    values_ = Buffer::Allocate(content_->value_bytes());
    slots_.clear();
    for (size_t i = 0; i < content_->slots(); ++i) {
      slots_.push_back(Buffer::Allocate(content_->value_bytes()));
    }
  }
  switch (piece.kind()) {
    case proto::ReplicaPiece::VALUES:
      return CopyInto(values_, piece.first(), frame);
    case proto::ReplicaPiece::SLOT:
      if (piece.slot() >= slots_.size()) break;
      return CopyInto(slots_[piece.slot()], piece.first(), frame);
    case proto::ReplicaPiece::RECORD: {
      record_bytes_ += frame.size();
      records_.emplace_back();
      if (record_bytes_ > kRecordBytesMax ||
          !records_.back().ParseFromArray(frame.data(), static_cast<int>(frame.size()))) {
        break;
      }
      return absl::OkStatus();
    }
    default:
      break;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("piece ", piece.piece(), " is of no kind that this shard has"));
}

absl::Status ContentImport::CopyInto(Buffer& target, uint64_t first, const Buffer& frame) {
  const uint64_t offset = first * sizeof(float);
  if (first > target.size() || offset > target.size() || frame.empty() ||
      frame.size() > target.size() - offset) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a piece of ", frame.size(), " bytes from element ", first, " on lies outside the shard"));
  }
  std::memcpy(target.MutableData() + offset, frame.data(), frame.size());
  element_bytes_ += frame.size();
  return absl::OkStatus();
}

}  // namespace covey::server
