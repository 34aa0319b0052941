// SPDX-License-Identifier: Apache-2.0
#include "common/recording/testing/recording_builder.h"

#include <span>
#include <utility>

#include "common/base/buffer.h"
#include "common/base/crc32c.h"

namespace covey {

RecordingBuilder::RecordingBuilder(const RecordingFileId& id) {
  const auto header = EncodeRecordingHeader({.job = 7, .file = id});
  bytes_.assign(header.begin(), header.end());
}

RecordingBuilder& RecordingBuilder::Add(const RecordingEntry& entry) {
  EncodeEntry(entry, entries_);
  return *this;
}

RecordingBuilder& RecordingBuilder::Add(AppliedRecord record, const std::vector<float>& gradient) {
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(gradient.data()),
                                       gradient.size() * sizeof(float));
  record.payload = {
      .format = WireFormat::kFloat32, .bytes = bytes.size(), .checksum = Crc32c(bytes)};
  payloads_.append(bytes.begin(), bytes.end());
  return Add(RecordingEntry(std::move(record)));
}

RecordingBuilder& RecordingBuilder::EndBlock() {
  const Buffer block = EncodeBlock(entries_);
  bytes_.append(block.bytes().begin(), block.bytes().end());
  bytes_ += std::exchange(payloads_, {});
  entries_.clear();
  return *this;
}

proto::Table SmallTable(uint32_t shard, uint32_t shards, uint64_t generation) {
  constexpr uint64_t kElements = 4;
  proto::Table table;
  table.set_id(1);
  proto::TableSpec& spec = *table.mutable_spec();
  spec.set_name("weights");
  spec.set_data_type(proto::FLOAT32);
  spec.add_shape(kElements * shards);
  spec.mutable_initializer()->set_kind(proto::Initializer::NORMAL);
  spec.mutable_initializer()->set_b(1);
  spec.mutable_initializer()->set_seed(5);
  spec.mutable_optimizer()->set_kind(proto::Optimizer::SGD);
  spec.mutable_learning_rate()->set_base(0.1);
  spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
  proto::Shard& part = *table.add_shards();
  part.set_index(shard);
  part.set_first_element(shard * kElements);
  part.set_element_count(kElements);
  part.set_generation(generation);
  return table;
}

ShardBegin BeginOf(const proto::Table& table, uint64_t stream, uint64_t chain_epoch) {
  return {.stream = stream,
          .chain_epoch = chain_epoch,
          .index = 0,
          .version = 0,
          .table = table.SerializeAsString()};
}

AppliedRecord UpdateOf(uint64_t group, uint64_t step, uint64_t stream) {
  AppliedPush push;
  push.producer_kind = AppliedPush::Producer::kGroup;
  push.producer = group;
  push.incarnation = 1;
  push.sequence = step;
  push.group = group;
  push.step = step;
  push.samples = 8;
  AppliedRecord record;
  record.stream = stream;
  record.is_update = true;
  record.pushes = {push};
  return record;
}

}  // namespace covey
