// SPDX-License-Identifier: Apache-2.0
#include "server/replication/shard_record.h"

#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/buffer.h"
#include "common/base/buffer_pool.h"
#include "common/net/message.h"
#include "gtest/gtest.h"
#include "server/replication/shard_content.h"
#include "server/table/host_memory.h"

namespace covey::server {
namespace {

constexpr uint64_t kElements = 4;

Buffer Frame(size_t elements) {
  const std::vector<float> values(elements, 1.5f);
  return Buffer::CopyOf({reinterpret_cast<const uint8_t*>(values.data()), 4 * elements});
}

Message InitialValues() {
  ShardRecord record = InitialValuesRecord({.frame = Frame(kElements), .checksum = {}});
  record.index = 1;
  return ToMessage(record);
}

Message InitialValuesWithState() {
  const EncodedGradient slot{.frame = Frame(kElements), .checksum = {}};
  ShardRecord record =
      InitialValuesRecord({.frame = Frame(kElements), .checksum = {}},
                          InitialState{.slots = {slot, slot}, .updates = 7, .samples = 70});
  record.index = 1;
  return ToMessage(record);
}

Message Update() {
  ShardRecord record;
  record.index = 1;
  record.version = Version(1);
  record.samples = 2;
  record.gradient = {.frame = Frame(kElements), .checksum = {}};
  return ToMessage(record);
}

// A peer's record of another size would be copied into the shard's memory.
TEST(ShardRecord, RefusesInitialValuesThatNoServerMakes) {
  const auto intact = ShardRecordOf(InitialValues(), {.elements = kElements});
  ASSERT_TRUE(intact.ok()) << intact.status();
  EXPECT_TRUE(intact->initial_values);
  EXPECT_EQ(intact->version, Version());
  using Change = std::function<void(Message&)>;
  const std::vector<Change> changes = {
      [](Message& m) { m.frames[0] = Frame(kElements + 1); },
      [](Message& m) { m.frames[0] = Frame(kElements - 1); },
      [](Message& m) { m.frames.clear(); },
      [](Message& m) { m.frames.push_back(Frame(kElements)); },
      [](Message& m) { m.envelope.mutable_replicate_request()->set_version(1); },
      [](Message& m) { m.envelope.mutable_replicate_request()->add_pushes(); },
      [](Message& m) { m.envelope.mutable_replicate_request()->set_cut(3); },
      [](Message& m) {
        m.envelope.mutable_replicate_request()->set_format(proto::WIRE_FLOAT16);
        m.frames[0] = Frame(kElements / 2);
      },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    Message message = InitialValues();
    changes[i](message);
    EXPECT_TRUE(absl::IsInvalidArgument(ShardRecordOf(message, {.elements = kElements}).status()))
        << i;
  }
}

TEST(ShardRecord, RefusesInitialStatesThatNoServerMakes) {
  const auto intact = ShardRecordOf(InitialValuesWithState(), {.elements = kElements});
  ASSERT_TRUE(intact.ok()) << intact.status();
  ASSERT_TRUE(intact->initial_state);
  EXPECT_EQ(intact->initial_state->updates, 7u);
  EXPECT_EQ(intact->initial_state->samples, 70u);
  EXPECT_EQ(intact->initial_state->slots.size(), 2u);
  EXPECT_EQ(intact->frame_bytes(), 3 * 4 * kElements);
  using Change = std::function<void(Message&)>;
  const std::vector<Change> changes = {
      [](Message& m) { m.frames[2] = Frame(kElements + 1); },
      [](Message& m) { m.frames.clear(); },
      [](Message& m) { m.envelope.mutable_replicate_request()->clear_initial_state(); },
      [](Message& m) {
        m.envelope.mutable_replicate_request()->mutable_initial_state()->set_updates(~0ull);
      },
      [](Message& m) {
        m.envelope.mutable_replicate_request()->mutable_initial_state()->set_samples(~0ull);
      },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    Message message = InitialValuesWithState();
    changes[i](message);
    EXPECT_TRUE(absl::IsInvalidArgument(ShardRecordOf(message, {.elements = kElements}).status()))
        << i;
  }
}

Message Functions() {
  ShardRecord record;
  record.index = 1;
  record.version = Version(1);
  record.functions = {{.kind = VectorFunction::Kind::kSet, .target = 2, .scalar = 0.5}};
  return ToMessage(record);
}

TEST(ShardRecord, RefusesFunctionsThatNoServerMakes) {
  const auto intact = ShardRecordOf(Functions(), {.elements = kElements});
  ASSERT_TRUE(intact.ok()) << intact.status();
  EXPECT_EQ(intact->functions.at(0).scalar, 0.5);
  EXPECT_TRUE(absl::IsInvalidArgument(ShardRecordOf(Functions(), {.row_width = 2}).status()));
  using Change = std::function<void(Message&)>;
  const std::vector<Change> changes = {
      [](Message& m) { m.frames.push_back(Frame(kElements)); },
      [](Message& m) { m.envelope.mutable_replicate_request()->set_samples(1); },
      [](Message& m) {
        m.envelope.mutable_replicate_request()->mutable_functions(0)->set_kind(
            static_cast<proto::VectorFunction::Kind>(99));
      },
      [](Message& m) {
        for (int i = 0; i < 256; ++i) m.envelope.mutable_replicate_request()->add_functions();
      },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    Message message = Functions();
    changes[i](message);
    EXPECT_TRUE(absl::IsInvalidArgument(ShardRecordOf(message, {.elements = kElements}).status()))
        << i;
  }
  // Of a table without vectors, and with fewer.
  BufferPool spares(0);
  HostMemory memory(spares);
  for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kVectors}) {
    const auto content =
        ShardContent::Create(absl::UnixEpoch(),
                             DenseShardConfig{.element_count = kElements,
                                              .optimizer = {.kind = kind, .vectors = 1},
                                              .learning_rate = {.base_rate = 1}},
                             memory);
    ASSERT_TRUE(content.ok()) << content.status();
    EXPECT_TRUE(absl::IsInvalidArgument((*content)->Apply(absl::UnixEpoch(), *intact, {})));
    EXPECT_EQ((*content)->version(), Version());
  }
}

TEST(ShardRecord, RefusesUpdatesThatNoServerMakes) {
  ASSERT_TRUE(ShardRecordOf(Update(), {.elements = kElements}).ok());
  using Change = std::function<void(proto::ReplicateRequest&)>;
  const std::vector<Change> changes = {
      [](proto::ReplicateRequest& r) { r.set_samples(0); },
      [](proto::ReplicateRequest& r) {
        r.set_rate_factor(std::numeric_limits<double>::infinity());
      },
      [](proto::ReplicateRequest& r) { r.set_momentum(1); },
      [](proto::ReplicateRequest& r) { r.set_format(proto::WIRE_FLOAT16); },
      [](proto::ReplicateRequest& r) { r.set_cut(3); },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    Message message = Update();
    changes[i](*message.envelope.mutable_replicate_request());
    EXPECT_TRUE(absl::IsInvalidArgument(ShardRecordOf(message, {.elements = kElements}).status()))
        << i;
  }
}

TEST(ShardContent, TakesInitialValuesBeforeTheFirstUpdateOnly) {
  BufferPool spares(1 << 20);
  HostMemory memory(spares);
  const auto content =
      ShardContent::Create(absl::UnixEpoch(), DenseShardConfig{.element_count = kElements}, memory)
          .value();
  const std::vector<float> values = {1, 2, 3, 4};
  const auto apply = [&](ShardRecord& record) {
    record.index = content->index() + 1;
    return content->Apply(absl::UnixEpoch(), record, std::span<const float>(values));
  };
  ShardRecord initial = InitialValuesRecord({});
  EXPECT_TRUE(apply(initial).ok());
  EXPECT_EQ(content->Values().As<float>()[2], 3);
  EXPECT_EQ(content->version(), Version());
  ShardRecord with_slots = ShardRecordOf(InitialValuesWithState(), {.elements = kElements}).value();
  EXPECT_TRUE(absl::IsFailedPrecondition(apply(with_slots))) << "the optimizer keeps none";
  ShardRecord counted = InitialValuesRecord({}, InitialState{.slots = {}, .updates = 3});
  EXPECT_TRUE(apply(counted).ok());
  EXPECT_EQ(content->version(), Version(3));
  EXPECT_TRUE(apply(initial).ok()) << "it has no updates of its own";
  EXPECT_EQ(content->version(), Version());
  ShardRecord update;
  update.version = Version(1);
  update.samples = 1;
  update.pushes.push_back({.key = {.producer = {.id = 9}, .sequence = 1}});
  ASSERT_TRUE(apply(update).ok());
  const float before = content->Values().As<float>()[2];
  EXPECT_TRUE(absl::IsFailedPrecondition(apply(initial)));
  EXPECT_EQ(content->Values().As<float>()[2], before);
}

Message RowsUpdate() {
  ShardRecord record;
  record.index = 1;
  record.version = Version(1);
  record.samples = 2;
  record.gradient.keys = EncodedKeys{};
  record.evictions = {{.first = 1, .last = 9, .score = 3, .tie = 4, .salt = 5},
                      {.of = Eviction::Of::kPending, .by = EvictBy::kNorm, .last = 7}};
  return ToMessage(record);
}

TEST(ShardRecord, CarriesEvictionsOfRows) {
  const GradientShape rows{.row_width = 2};
  const auto record = ShardRecordOf(RowsUpdate(), rows);
  ASSERT_TRUE(record.ok()) << record.status();
  ASSERT_EQ(record->evictions.size(), 2);
  EXPECT_EQ(record->evictions[0],
            (Eviction{.first = 1, .last = 9, .score = 3, .tie = 4, .salt = 5}));
  EXPECT_EQ(record->evictions[1],
            (Eviction{.of = Eviction::Of::kPending, .by = EvictBy::kNorm, .last = 7}));
  Message unknown = RowsUpdate();
  unknown.envelope.mutable_replicate_request()->mutable_evictions(0)->set_by(
      static_cast<proto::EvictBy>(9));
  EXPECT_EQ(ShardRecordOf(unknown, rows).status().code(), absl::StatusCode::kInvalidArgument);
  Message many = RowsUpdate();
  for (size_t i = 0; i < kEvictionsPerRecordMax; ++i) {
    many.envelope.mutable_replicate_request()->add_evictions();
  }
  EXPECT_EQ(ShardRecordOf(many, rows).status().code(), absl::StatusCode::kInvalidArgument);
  Message dense = Update();
  dense.envelope.mutable_replicate_request()->add_evictions();
  EXPECT_EQ(ShardRecordOf(dense, {.elements = kElements}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace covey::server
