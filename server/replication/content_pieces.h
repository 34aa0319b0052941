#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/buffer.h"
#include "common/net/message.h"
#include "proto/replication.pb.h"
#include "server/replication/shard_content.h"

namespace covey::server {

// A shard's content on its way to a replica that has none, as of one record, cut into pieces of at
// most kReplicaPieceBytesMax. Values travel from where they are, since updates do not write what is
// held; the optimizer's slots, which they do write, are copied when it is made.
//
// Actor-confined. Memory: as much as the slots, and one old copy of the values.
class ContentExport {
 public:
  explicit ContentExport(const ShardContent& content);

  uint64_t index() const { return index_; }
  uint64_t pieces() const { return pieces_.size(); }
  uint64_t PieceBytes(uint64_t piece) const { return pieces_[piece].frame.size(); }
  // A ReplicaPiece; without address and chain. Precondition: piece < pieces().
  Message Piece(uint64_t piece);
  // A ReplicaPiece without a frame, which no piece is: asks whether this one, and all before it, is
  // held.
  Message Query(uint64_t piece) const;

 private:
  struct Cut {
    proto::ReplicaPiece::Kind kind;
    uint32_t slot = 0;
    uint64_t first = 0;
    Buffer frame;
    std::optional<uint32_t> checksum;
  };
  void CutUp(const Buffer& elements, proto::ReplicaPiece::Kind kind, uint32_t slot);

  const uint64_t index_;
  const uint64_t version_;
  const uint64_t samples_;
  std::vector<Cut> pieces_;
};

// Puts the pieces together again. One that fits nothing is left out, one of another index begins
// anew. Allocates what the table's definition says, never what a message says.
//
// Actor-confined.
class ContentImport {
 public:
  // `content`: fresh, of the same definition; takes in what comes.
  explicit ContentImport(std::unique_ptr<ShardContent> content);

  // As of which record the pieces are that have come.
  uint64_t index() const { return index_; }
  // The piece that is wanted next.
  uint64_t next_piece() const { return next_; }
  // True when it was the last one: the content is complete. Its frame has been checked.
  // INVALID_ARGUMENT: no honest piece. FAILED_PRECONDITION: all pieces are here, and wrong together.
  // After an error it waits for the first piece again.
  absl::StatusOr<bool> Add(absl::Time now, const Message& message);
  std::unique_ptr<ShardContent> Take() { return std::move(content_); }

 private:
  void Restart();
  absl::Status Take(const proto::ReplicaPiece& piece, const Buffer& frame);
  absl::Status CopyInto(Buffer& target, uint64_t first, const Buffer& frame);

  std::unique_ptr<ShardContent> content_;
  uint64_t next_ = 0;
  // As in piece 0.
  uint64_t index_ = 0;
  uint64_t pieces_ = 0;
  // Bytes of values and slots that are here; those of other pieces.
  uint64_t element_bytes_ = 0;
  uint64_t record_bytes_ = 0;
  Buffer values_;
  std::vector<Buffer> slots_;
  std::vector<proto::ReplicaRecord> records_;
};

}  // namespace covey::server
