// SPDX-License-Identifier: Apache-2.0
// The content of a shard from another server or a store: one byte, whether the shard is dense (0)
// or sparse, then for each piece a ReplicaPiece and its frame.
#include "server/replication/content_pieces.h"

#include <memory>
#include <string>
#include <vector>

#include "common/base/buffer_pool.h"
#include "common/base/check.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"
#include "common/table/key_slots.h"
#include "server/table/host_memory.h"

namespace covey {
namespace {

using server::ShardContent;

constexpr uint64_t kElements = 6;
constexpr size_t kRowWidth = 3;
constexpr int kPiecesMax = 16;

const OptimizerConfig kOptimizer = {.kind = OptimizerKind::kAdagrad};

// A shard before its first update.
std::unique_ptr<ShardContent> Fresh(bool is_sparse, server::TableMemory& memory) {
  ShardContent::Config config =
      server::DenseShardConfig{.element_count = kElements, .optimizer = kOptimizer};
  if (is_sparse) {
    config = server::SparseShardConfig{
        .slot_count = kKeySlots, .width = kRowWidth, .rows_max = 100, .optimizer = kOptimizer};
  }
  return ShardContent::Create(absl::UnixEpoch(), config, memory).value();
}

// The pieces of a shard after an update, as an input.
std::string SeedOf(bool is_sparse, ShardContent& content) {
  const std::vector<float> elements(kElements, 0.5f);
  const std::vector<uint64_t> keys = {5, 70'000};
  server::ShardRecord record{
      .index = 1,
      .version = Version(1),
      .pushes = {{.key = {.producer = {.kind = server::Producer::Kind::kGroup, .id = 3},
                          .incarnation = 2,
                          .sequence = 7},
                  .group = GroupId(3),
                  .step = Step(7)}},
      .samples = 4,
      .adjustment = {},
      .gradient = {},
      .digest = {}};
  const server::Gradient gradient =
      is_sparse ? server::Gradient(elements, keys) : server::Gradient(elements);
  COVEY_CHECK(content.Apply(absl::UnixEpoch(), record, gradient).ok());
  server::ContentExport pieces(content.Cut());
  std::vector<std::string> parts = {std::string(1, static_cast<char>(is_sparse))};
  for (uint64_t i = 0; i < pieces.pieces(); ++i) {
    const Message message = pieces.Piece(i);
    parts.push_back(message.envelope.replica_piece().SerializeAsString());
    parts.emplace_back(FuzzText(message.frames[0].bytes()));
  }
  return JoinFuzzParts(parts);
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  BufferPool spares(1 << 20);
  server::HostMemory memory(spares);
  std::vector<std::string> seeds;
  for (const bool is_sparse : {false, true}) {
    seeds.push_back(SeedOf(is_sparse, *Fresh(is_sparse, memory)));
  }
  return seeds;
}

bool FuzzOne(std::span<const uint8_t> input) {
  BufferPool spares(1 << 20);
  server::HostMemory memory(spares);
  const std::span<const uint8_t> first = TakeFuzzPart(input);
  const bool is_sparse = !first.empty() && first[0] != 0;
  server::ContentImport import(Fresh(is_sparse, memory));
  bool any = false;
  for (int i = 0; i < kPiecesMax && !input.empty(); ++i) {
    const std::span<const uint8_t> body = TakeFuzzPart(input);
    Message message;
    if (!message.envelope.mutable_replica_piece()->ParseFromArray(body.data(),
                                                                  static_cast<int>(body.size()))) {
      continue;
    }
    message.frames.push_back(Buffer::CopyOf(TakeFuzzPart(input)));
    const uint64_t next = import.next_piece();
    const auto complete = import.Add(absl::UnixEpoch(), message);
    any = any || import.next_piece() > next;
    if (!complete.ok() || !*complete) continue;
    // It can be passed on, and is the same there.
    const std::unique_ptr<ShardContent> content = import.Take();
    server::ContentExport pieces(content->Cut());
    server::ContentImport next_import(Fresh(is_sparse, memory));
    for (uint64_t piece = 0; piece < pieces.pieces(); ++piece) {
      const auto done = next_import.Add(absl::UnixEpoch(), pieces.Piece(piece));
      COVEY_CHECK(done.ok() && *done == (piece + 1 == pieces.pieces()));
    }
    COVEY_CHECK(next_import.Take()->Digest() == content->Digest());
    return true;
  }
  return any;
}

}  // namespace covey
