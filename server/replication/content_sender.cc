// SPDX-License-Identifier: Apache-2.0
#include "server/replication/content_sender.h"

#include <algorithm>

#include "common/cluster/limits.h"

namespace covey::server {
namespace {

constexpr uint64_t kPieceBytesInFlight = 2 * kReplicaPieceBytesMax;

}  // namespace

void ContentSender::SetHeld(uint64_t piece) {
  held_ = piece;
  export_.Release(piece);
  sent_ = std::max(sent_, piece);
}

uint64_t ContentSender::SendMore(absl::FunctionRef<void(Message)> post) {
  uint64_t in_flight = 0;
  for (uint64_t piece = held_; piece < sent_; ++piece) in_flight += export_.PieceBytes(piece);
  uint64_t bytes = 0;
  while (HasPiece(sent_) && in_flight < kPieceBytesInFlight) {
    post(export_.Piece(sent_));
    in_flight += export_.PieceBytes(sent_);
    bytes += export_.PieceBytes(sent_);
    ++sent_;
  }
  return bytes;
}

}  // namespace covey::server
