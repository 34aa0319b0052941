// SPDX-License-Identifier: Apache-2.0
#include "server/replication/content_pieces.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/planted_bug.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/net/frame_checksum.h"

namespace covey::server {
namespace {

// Largest size of all parts of a record together: kProducersPerShardMax producers with full
// windows.
constexpr uint64_t kRecordBytesMax = uint64_t{kProducersPerShardMax} * kDedupWindow * 20;

uint64_t RowsPerPiece(const RowLayout& layout) {
  return std::max<uint64_t>(kReplicaPieceBytesMax / layout.row_bytes(), 1);
}

// Whether the piece is made as it is sent.
bool IsOfRows(proto::ReplicaPiece::Kind kind) {
  return kind == proto::ReplicaPiece::ROWS || kind == proto::ReplicaPiece::PENDING;
}

// Plants PlantedBug::kLoseRowOnMove.
RowPiece WithoutLastRow(const RowPiece& piece, const RowLayout& layout) {
  const RowPieceReader reader = RowPieceReader::Open(piece, layout).value();
  std::vector<SparseRow> rows;
  for (size_t i = 0; i + 1 < piece.rows; ++i) rows.push_back(reader.Row(i));
  return MakeRowPiece(rows, layout);
}

// Plants PlantedBug::kSlotsStayBehind.
Buffer ZerosLike(const Buffer& slot) {
  Buffer zeros = Buffer::CopyOf(slot.bytes());
  std::ranges::fill(zeros.MutableAs<float>(), 0.0f);
  return zeros;
}

Buffer FrameOf(const proto::ReplicaRecord& record) {
  const std::string bytes = record.SerializeAsString();
  return Buffer::CopyOf({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

}  // namespace

ContentExport::ContentExport(ContentCut cut) : cut_(std::move(cut)) {
  AddRowParts();
  AddParts(cut_.values, proto::ReplicaPiece::VALUES, 0);
  for (uint32_t slot = 0; slot < cut_.slots.size(); ++slot) {
    const Buffer& elements = cut_.slots[slot];
    AddParts(Planted(PlantedBug::kSlotsStayBehind) ? ZerosLike(elements) : elements,
             proto::ReplicaPiece::SLOT, slot);
  }
  std::vector<proto::ReplicaRecord> records = cut_.Describe();
  last_record_ = std::move(records.back());
  records.pop_back();
  for (const proto::ReplicaRecord& record : records) {
    parts_.push_back({.kind = proto::ReplicaPiece::RECORD, .frame = FrameOf(record)});
  }
  parts_.push_back({.kind = proto::ReplicaPiece::RECORD});
}

void ContentExport::AddParts(const Buffer& elements, proto::ReplicaPiece::Kind kind,
                             uint32_t slot) {
  for (size_t offset = 0; offset < elements.size(); offset += kReplicaPieceBytesMax) {
    const size_t size = std::min(kReplicaPieceBytesMax, elements.size() - offset);
    parts_.push_back({.kind = kind,
                      .slot = slot,
                      .first = offset / sizeof(float),
                      .frame = elements.Slice(offset, size)});
  }
}

void ContentExport::AddRowParts() {
  if (cut_.rows == nullptr) return;
  const auto add = [this](proto::ReplicaPiece::Kind kind, const RowLayout& layout, uint64_t rows) {
    const uint64_t rows_per_part = RowsPerPiece(layout);
    for (uint64_t first = 0; first < rows; first += rows_per_part) {
      parts_.push_back({.kind = kind, .rows = std::min(rows_per_part, rows - first)});
    }
  };
  add(proto::ReplicaPiece::ROWS, cut_.rows->layout(), cut_.rows->rows());
  add(proto::ReplicaPiece::PENDING, kPendingLayout, cut_.rows->pending());
}

void ContentExport::MakeRowParts(uint64_t last) {
  while (rows_made_ <= last && IsOfRows(parts_[rows_made_].kind)) {
    Part& part = parts_[rows_made_++];
    const bool is_pending = part.kind == proto::ReplicaPiece::PENDING;
    const RowLayout layout = is_pending ? kPendingLayout : cut_.rows->layout();
    const uint64_t bytes = part.rows * layout.row_bytes();
    RowPiece piece = is_pending ? cut_.rows->NextPending(bytes) : cut_.rows->Next(bytes);
    COVEY_CHECK(piece.rows == part.rows);
    if (!is_pending && piece.rows > 1 && Planted(PlantedBug::kLoseRowOnMove)) {
      piece = WithoutLastRow(piece, layout);
    }
    const RowPieceReader reader = RowPieceReader::Open(piece, layout).value();
    const bool counts = !is_pending || !Planted(PlantedBug::kAdmissionForgets);
    for (size_t i = 0; i < piece.rows && counts; ++i) {
      rows_digest_ += DigestOf(reader.Row(i), layout);
    }
    part.frame = std::move(piece.frame);
  }
}

void ContentExport::Release(uint64_t piece) {
  for (; released_ < piece && IsOfRows(parts_[released_].kind); ++released_) {
    parts_[released_].frame = Buffer();
  }
}

uint32_t ContentExport::ChecksumOf(Part& part) {
  if (!part.checksum) part.checksum = FrameChecksum(part.frame);
  return *part.checksum;
}

uint64_t ContentExport::Digest() {
  if (cut_.rows != nullptr) {
    MakeRowParts(parts_.size());
    return cut_.Digest(std::array{rows_digest_});
  }
  std::vector<uint64_t> checksums;  // of the values, then of each slot
  for (Part& part : parts_) {
    if (part.kind == proto::ReplicaPiece::RECORD) break;
    const uint32_t checksum = ChecksumOf(part);
    if (part.first == 0) {
      checksums.push_back(checksum);
    } else {
      checksums.back() =
          JoinCrc32c(static_cast<uint32_t>(checksums.back()), checksum, part.frame.size());
    }
  }
  return cut_.Digest(checksums);
}

Message ContentExport::Piece(uint64_t number) {
  Part& part = parts_[number];
  COVEY_CHECK(Has(number));
  if (IsOfRows(part.kind)) {
    MakeRowParts(number);
  } else if (part.frame.empty()) {
    last_record_.set_digest(Digest());
    part.frame = FrameOf(last_record_);
  }
  Message message;
  proto::ReplicaPiece& piece = *message.envelope.mutable_replica_piece();
  piece.set_index(cut_.index);
  piece.set_version(cut_.version.value());
  piece.set_samples(cut_.samples);
  piece.set_piece(number);
  piece.set_pieces(parts_.size());
  piece.set_kind(part.kind);
  piece.set_slot(part.slot);
  piece.set_first(part.first);
  AddFrame(message, part.frame, ChecksumOf(part));
  return message;
}

Message ContentExport::Query(uint64_t number) const {
  Message message;
  proto::ReplicaPiece& piece = *message.envelope.mutable_replica_piece();
  piece.set_index(cut_.index);
  piece.set_piece(number);
  piece.set_pieces(parts_.size());
  return message;
}

ContentImport::ContentImport(std::unique_ptr<ShardContent> content, LoadSource::Takes takes)
    : content_(std::move(content)), takes_(takes) {}

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
    status = Finish(now, piece);
    if (status.ok()) return true;
  }
  if (status.ok()) return false;
  Restart();
  return status;
}

absl::Status ContentImport::Finish(absl::Time now, const proto::ReplicaPiece& last) {
  if (content_->sparse() != nullptr) {
    if (takes_ == LoadSource::Takes::kEverything) {
      return content_->RestoreRest(now, index_, last.version(), last.samples(), records_);
    }
    content_->sparse()->RestoreCounts(last.version(), last.samples());
    return absl::OkStatus();
  }
  const bool values_only = takes_ == LoadSource::Takes::kValues;
  const uint64_t wanted = values_only ? content_->value_bytes() : content_->bytes();
  if (element_bytes_ != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("the content ends after ", element_bytes_, " of ", wanted, " bytes"));
  }
  if (takes_ == LoadSource::Takes::kEverything) {
    return content_->Restore(now, index_, last.version(), last.samples(), std::move(values_),
                             std::move(slots_), records_);
  }
  for (size_t i = slots_.size(); i < content_->slots(); ++i) slots_.push_back(content_->Slot(i));
  content_->Begin(std::move(values_), std::move(slots_), last.version(), last.samples());
  return absl::OkStatus();
}

void ContentImport::Begin(const proto::ReplicaPiece& first) {
  index_ = first.index();
  pieces_ = first.pieces();
  if (content_->sparse() != nullptr) return content_->ClearRows();
  values_ = content_->NewArray();
  slots_.clear();
  for (size_t i = 0; takes_ != LoadSource::Takes::kValues && i < content_->slots(); ++i) {
    slots_.push_back(content_->NewArray());
  }
}

absl::Status ContentImport::Take(const proto::ReplicaPiece& piece, const Buffer& frame) {
  if (next_ == 0) Begin(piece);
  const bool is_sparse = content_->sparse() != nullptr;
  switch (piece.kind()) {
    case proto::ReplicaPiece::ROWS:
      if (!is_sparse) break;
      return TakeRows(frame);
    case proto::ReplicaPiece::PENDING:
      if (!is_sparse) break;
      return content_->sparse()
          ->RestorePending({.rows = frame.size() / kPendingLayout.row_bytes(), .frame = frame})
          .status();
    case proto::ReplicaPiece::VALUES:
      if (is_sparse) break;
      return CopyInto(values_, piece.first(), frame);
    case proto::ReplicaPiece::SLOT:
      if (piece.slot() >= slots_.size()) break;
      return CopyInto(slots_[piece.slot()], piece.first(), frame);
    case proto::ReplicaPiece::RECORD: {
      if (takes_ != LoadSource::Takes::kEverything) {
        // It ends the rows, and there is nothing to take.
        if (is_sparse) return absl::OkStatus();
        break;
      }
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

absl::Status ContentImport::TakeRows(const Buffer& frame) {
  const auto restored = takes_ == LoadSource::Takes::kValues ? SparseShard::Restored::kValues
                                                             : SparseShard::Restored::kState;
  const size_t rows = frame.size() / content_->sparse()->layout().row_bytes();
  return content_->sparse()->RestoreRows({.rows = rows, .frame = frame}, restored).status();
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
