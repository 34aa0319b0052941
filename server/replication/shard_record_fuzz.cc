// SPDX-License-Identifier: Apache-2.0
// Records of a shard from another server: one byte that chooses the shape of the shard, a
// ReplicateRequest, and frames. Their gradients are decoded, too.
#include "server/replication/shard_record.h"

#include <string>
#include <vector>

#include "common/base/buffer_pool.h"
#include "common/base/check.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {
namespace {

using server::EncodedGradient;
using server::GradientShape;
using server::ShardRecord;

constexpr uint64_t kElements = 600;
const GradientShape kShapes[] = {
    {.elements = kElements},
    {.elements = kElements, .matrix = {.first_element = 10, .elements = kElements, .columns = 32}},
    {.row_width = 3},
};

Buffer Floats(size_t count) {
  const std::vector<float> values(count, 1.5f);
  return Buffer::CopyOf({reinterpret_cast<const uint8_t*>(values.data()), 4 * count});
}

ShardRecord Update(EncodedGradient gradient) {
  ShardRecord record;
  record.index = 3;
  record.version = Version(2);
  record.samples = 32;
  record.gradient = std::move(gradient);
  record.pushes.push_back({.key = {.producer = {.kind = server::Producer::Kind::kGroup, .id = 3},
                                   .incarnation = 2,
                                   .sequence = 7},
                           .group = GroupId(3),
                           .step = Step(7),
                           .norm = 2});
  return record;
}

std::string SeedOf(size_t shape, ShardRecord record) {
  const Message message = server::ToMessage(record);
  std::vector<std::string> parts = {std::string(1, static_cast<char>(shape)),
                                    message.envelope.replicate_request().SerializeAsString()};
  for (const Buffer& frame : message.frames) parts.emplace_back(FuzzText(frame.bytes()));
  return JoinFuzzParts(parts);
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  const std::vector<uint64_t> keys = {5, 70'000};
  ShardRecord by_functions = Update({});
  by_functions.samples = 0;
  by_functions.functions.push_back(
      {.kind = VectorFunction::Kind::kAxpy, .target = 2, .source = 1, .scalar = 0.5});
  ShardRecord rows = Update({.frame = Floats(6), .checksum = {}, .keys = Encoded(keys)});
  rows.evictions.push_back({});
  return {
      SeedOf(0, Update({.frame = Floats(kElements), .checksum = {}})),
      SeedOf(0, server::CutRecord(4, Epoch(9))),
      SeedOf(0, by_functions),
      SeedOf(0, server::InitialValuesRecord(
                    {.frame = Floats(kElements), .checksum = {}},
                    server::InitialState{.slots = {{.frame = Floats(kElements), .checksum = {}}},
                                         .updates = 7,
                                         .samples = 70})),
      SeedOf(1, Update({.frame = Buffer::CopyOf(std::vector<uint8_t>(
                            FactorBytes(WireFormat::kFloat16, kShapes[1].matrix, 2))),
                        .format = proto::WIRE_FLOAT16,
                        .terms = 2,
                        .checksum = {}})),
      SeedOf(2, rows),
  };
}

bool FuzzOne(std::span<const uint8_t> input) {
  const std::span<const uint8_t> first = TakeFuzzPart(input);
  const GradientShape& shape = kShapes[first.empty() ? 0 : first[0] % std::size(kShapes)];
  const std::span<const uint8_t> body = TakeFuzzPart(input);
  Message message;
  if (!message.envelope.mutable_replicate_request()->ParseFromArray(
          body.data(), static_cast<int>(body.size()))) {
    return false;
  }
  for (Buffer& frame : FuzzFrames(input, 4)) message.frames.push_back(std::move(frame));
  auto record = server::ShardRecordOf(message, shape);
  if (!record.ok()) return false;
  BufferPool spares(1 << 20);
  if (!record->gradient.frame.empty()) {
    const auto gradient = server::Decoded(record->gradient, shape, spares);
    if (!gradient.ok()) return false;
    COVEY_CHECK(shape.is_sparse() || gradient->spans().elements.size() == shape.elements);
    COVEY_CHECK(!shape.is_sparse() || gradient->spans().elements.size() ==
                                          gradient->spans().keys.size() * shape.row_width);
  }
  // What a replica passes on, its successor takes, too.
  const auto again = server::ShardRecordOf(server::ToMessage(*record), shape);
  COVEY_CHECK(again.ok());
  COVEY_CHECK(again->index == record->index && again->version == record->version);
  COVEY_CHECK(again->pushes.size() == record->pushes.size());
  COVEY_CHECK(again->frame_bytes() == record->frame_bytes());
  return true;
}

}  // namespace covey
