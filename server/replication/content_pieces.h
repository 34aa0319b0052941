// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/buffer.h"
#include "common/net/message.h"
#include "proto/replication.pb.h"
#include "server/replication/content_cut.h"
#include "server/replication/load_source.h"
#include "server/replication/shard_content.h"

namespace covey::server {

// A shard's content as of one record, in pieces of at most kReplicaPieceBytesMax for a replica that
// has none. Values and slots are sent without a copy; rows are read from the cut as their pieces
// are made, in order. Each byte is checksummed once, when its piece is made; the digest of the
// content, which the last piece contains, is made from these checksums, and from digests of rows.
//
// Actor-confined. Memory as ContentCut, and the pieces of rows that were made and not released.
class ContentExport {
 public:
  explicit ContentExport(ContentCut cut);

  uint64_t index() const { return cut_.index; }
  uint64_t pieces() const { return parts_.size(); }
  // A ReplicaPiece; without address and chain. Precondition: piece < pieces(). Cost of the first
  // call for a piece: one pass over it; for the last piece, also over those that were not made yet.
  Message Piece(uint64_t piece);
  // The pieces of rows below `piece` will not be asked for again; their memory goes.
  void Release(uint64_t piece);
  // Whether the piece can be made, or made again. Precondition: piece < pieces().
  bool Has(uint64_t piece) const { return piece >= released_; }
  // Of its frame. Precondition: the piece was made, and not released.
  uint64_t PieceBytes(uint64_t piece) const { return parts_[piece].frame.size(); }
  // A ReplicaPiece without a frame, which is a query: are this piece, and all before it, held?
  Message Query(uint64_t piece) const;

 private:
  struct Part {
    proto::ReplicaPiece::Kind kind;
    uint32_t slot = 0;
    uint64_t first = 0;
    uint64_t rows = 0;
    Buffer frame = {};  // of rows, and of the last part: empty until it is made
    std::optional<uint32_t> checksum = std::nullopt;
  };
  void AddParts(const Buffer& elements, proto::ReplicaPiece::Kind kind, uint32_t slot);
  void AddRowParts();
  // Reads rows up to this part.
  void MakeRowParts(uint64_t last);
  static uint32_t ChecksumOf(Part& part);
  // Of the content.
  uint64_t Digest();

  const ContentCut cut_;
  proto::ReplicaRecord last_record_;  // the last part, without the digest
  std::vector<Part> parts_;
  uint64_t rows_made_ = 0;    // parts of rows
  uint64_t rows_digest_ = 0;  // of the rows in them
  uint64_t released_ = 0;
};

// Assembles the content from its pieces. A piece that does not fit is ignored; a piece of another
// index starts over. The size of its memory comes from the table's definition, never from a
// message.
//
// Actor-confined.
class ContentImport {
 public:
  // `content`: new, of the same definition; filled from the pieces. These hold what it takes; all
  // else stays as it is.
  explicit ContentImport(std::unique_ptr<ShardContent> content,
                         LoadSource::Takes takes = LoadSource::Takes::kEverything);

  // The record as of which the pieces so far are.
  uint64_t index() const { return index_; }
  // The next piece that is needed.
  uint64_t next_piece() const { return next_; }
  // As ShardContent, of what has been filled in so far.
  uint64_t memory_bytes() const { return content_->memory_bytes(); }
  // True when it was the last piece: the content is complete. Precondition: its frame was checked.
  // INVALID_ARGUMENT: no correct server sends this piece. FAILED_PRECONDITION: all pieces have
  // arrived, but their content is wrong. After an error it waits for the first piece again.
  absl::StatusOr<bool> Add(absl::Time now, const Message& message);
  std::unique_ptr<ShardContent> Take() { return std::move(content_); }

 private:
  void Restart();
  // Makes room for the content that this piece begins.
  void Begin(const proto::ReplicaPiece& first);
  absl::Status Take(const proto::ReplicaPiece& piece, const Buffer& frame);
  // All pieces have arrived; `last` is the last.
  absl::Status Finish(absl::Time now, const proto::ReplicaPiece& last);
  absl::Status TakeRows(const Buffer& frame);
  absl::Status CopyInto(Buffer& target, uint64_t first, const Buffer& frame);

  std::unique_ptr<ShardContent> content_;
  const LoadSource::Takes takes_;
  uint64_t next_ = 0;
  // As in piece 0.
  uint64_t index_ = 0;
  uint64_t pieces_ = 0;
  // Received bytes of values and slots; and of other pieces.
  uint64_t element_bytes_ = 0;
  uint64_t record_bytes_ = 0;
  Buffer values_;
  std::vector<Buffer> slots_;
  std::vector<proto::ReplicaRecord> records_;
};

}  // namespace covey::server
