// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "absl/functional/function_ref.h"
#include "common/net/message.h"
#include "server/replication/content_cut.h"
#include "server/replication/content_pieces.h"

namespace covey::server {

// Sends a shard's content, as of one record, to a successor that has none: piece by piece, with a
// bounded number of bytes in flight.
//
// Invariant: held() <= sent() <= pieces.
//
// Actor-confined. Memory as ContentExport.
class ContentSender {
 public:
  explicit ContentSender(ContentCut cut) : export_(std::move(cut)) {}

  // The record as of which the content is.
  uint64_t index() const { return export_.index(); }
  bool HasPiece(uint64_t piece) const { return piece < export_.pieces(); }
  // False: the piece was held by the successor, and can not be made again.
  bool CanResend(uint64_t piece) const { return export_.Has(piece); }
  uint64_t held() const { return held_; }

  // The successor holds the pieces below `piece`; they are not resent.
  void SetHeld(uint64_t piece);
  // The pieces from this one on were lost.
  void Rewind(uint64_t piece) { sent_ = piece; }
  // Gives further pieces to `post`, without address and chain. Returns their bytes.
  uint64_t SendMore(absl::FunctionRef<void(Message)> post);
  // A query whether everything that was sent is held. Precondition: a piece was sent.
  Message Query() const { return export_.Query(sent_ - 1); }

 private:
  ContentExport export_;
  uint64_t sent_ = 0;
  uint64_t held_ = 0;
};

}  // namespace covey::server
