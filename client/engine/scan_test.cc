// SPDX-License-Identifier: Apache-2.0

// Scans of a sparse table against servers whose replies are scripted, also wrong ones.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "client/testing/request_engine_fixture.h"
#include "common/base/random.h"
#include "common/cluster/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Keys = std::vector<uint64_t>;
using Floats = std::vector<float>;

template <typename T>
Buffer BufferOf(const std::vector<T>& elements) {
  return Buffer::CopyOf(
      {reinterpret_cast<const uint8_t*>(elements.data()), elements.size() * sizeof(T)});
}

// The first shard holds the first half of the slots.
std::shared_ptr<const ClusterView> SparseView(uint64_t epoch, uint64_t first = kServerA,
                                              const ViewOptions& options = {}) {
  proto::ClusterView view = View(epoch, first, kServerB, options)->proto();
  proto::Table& table = *view.mutable_tables(0);
  table.mutable_spec()->clear_shape();
  table.mutable_spec()->mutable_sparse()->set_width(2);
  for (int i = 0; i < 2; ++i) {
    table.mutable_shards(i)->set_first_element(i * (kKeySlots / 2));
    table.mutable_shards(i)->set_element_count(kKeySlots / 2);
  }
  return *ClusterView::Make(std::move(view));
}

class ScanTest : public RequestEngineTest {
 protected:
  ScanTest() {
    ShowView(SparseView(2));
    // Of the first shard, ascending by MixBits.
    for (uint64_t key = 0; keys_.size() < 4; ++key) {
      if (MixBits(key) >> 63 == 0) keys_.push_back(key);
    }
    std::sort(keys_.begin(), keys_.end(),
              [](uint64_t a, uint64_t b) { return MixBits(a) < MixBits(b); });
  }

  Operation Scan(uint64_t first = 0) {
    Operation operation{.table = TableId(3),
                        .first_shard = ShardIndex(0),
                        .shard_count = 1,
                        .deadline = kStart + absl::Seconds(10)};
    operation.scan =
        ScanOperation{.first = first, .generation = 1, .since = 7, .width = 2, .into = &rows_};
    operation.done = [this](absl::Time, const OperationResult& result, Outbox&) {
      results_.push_back(result);
    };
    return operation;
  }
  // As a server makes it: all four keys but the last, which is gone.
  Message Reply(const Message& request) {
    Message reply = ReplyTo(request);
    proto::PullReply& body = *reply.envelope.mutable_pull_reply();
    body.mutable_state()->set_version(9);
    body.mutable_state()->set_generation(1);
    body.mutable_scanned()->set_last(MixBits(keys_[3]));
    body.mutable_scanned()->set_rows(3);
    body.mutable_scanned()->set_removed(1);
    reply.frames = {BufferOf(Keys(keys_.begin(), keys_.begin() + 3)),
                    BufferOf(Floats{1, 2, 3, 4, 5, 6}), BufferOf(Keys{keys_[3]})};
    return reply;
  }
  void Give(Message reply) {
    SetFrameChecksums(reply);
    engine_.Receive(now_, reply, outbox_);
  }
  // The status of a scan that gets this reply.
  absl::Status Answered(const std::function<void(Message&, proto::ScannedRows&)>& change,
                        uint64_t first = 0) {
    results_.clear();
    Start(Scan(first));
    const std::vector<Message> sent = outbox_.TakeMessages();
    if (sent.size() != 1) return absl::UnknownError("not one request");
    Message reply = Reply(sent[0]);
    change(reply, *reply.envelope.mutable_pull_reply()->mutable_scanned());
    Give(std::move(reply));
    if (results_.size() != 1) return absl::UnknownError("not one result");
    return results_[0].status;
  }

  Keys keys_;
  ScannedRows rows_;
};

TEST_F(ScanTest, AsksOneShardAndTakesItsPiece) {
  Start(Scan(5));
  const std::vector<Message> sent = outbox_.TakeMessages();
  ASSERT_THAT(sent, SizeIs(1));
  const proto::PullRequest& pull = sent[0].envelope.pull_request();
  EXPECT_EQ(pull.scan().first(), 5);
  EXPECT_EQ(pull.scan().generation(), 1);
  EXPECT_EQ(pull.scan().since(), 7);
  EXPECT_FALSE(pull.has_keys());
  EXPECT_EQ(engine_.bytes_in_flight(), kScanBytesMax);
  Give(Reply(sent[0]));
  ASSERT_THAT(results_, SizeIs(1));
  EXPECT_TRUE(results_[0].status.ok()) << results_[0].status;
  EXPECT_EQ(rows_.last, MixBits(keys_[3]));
  EXPECT_EQ(rows_.version, (ShardVersion{1, Version(9)}));
  EXPECT_THAT(rows_.keys, ElementsAre(keys_[0], keys_[1], keys_[2]));
  EXPECT_THAT(rows_.rows, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(rows_.removed, ElementsAre(keys_[3]));
  EXPECT_EQ(engine_.bytes_in_flight(), 0);
  // The next one asks for nothing older.
  Start(Scan());
  EXPECT_EQ(outbox_.TakeMessages()[0].envelope.pull_request().read().min_version(), 9);
}

// A view whose table has rows of that type.
std::shared_ptr<const ClusterView> ViewOfType(uint64_t epoch, int type) {
  proto::ClusterView view = SparseView(epoch)->proto();
  view.mutable_tables(0)->mutable_spec()->set_data_type(static_cast<proto::DataType>(type));
  return *ClusterView::Make(std::move(view));
}

TEST_F(ScanTest, RowsOfTwoBytesAreDecoded) {
  ShowView(ViewOfType(3, proto::BFLOAT16));
  const auto encode = [](Message& reply, proto::ScannedRows&) {
    // 1, 1.5, -2, infinity, 0, 2^-126.
    reply.frames[1] = BufferOf(std::vector<uint16_t>{0x3f80, 0x3fc0, 0xc000, 0x7f80, 0, 0x0080});
  };
  EXPECT_TRUE(Answered(encode).ok());
  EXPECT_THAT(rows_.rows, ElementsAre(1, 1.5f, -2, INFINITY, 0, 0x1p-126f));
  // Rows of float32 are no such rows.
  EXPECT_THAT(std::string(Answered([](Message&, proto::ScannedRows&) {}).message()),
              HasSubstr("frames of other sizes"));
}

TEST_F(ScanTest, ADamagedPieceIsAskedForAgain) {
  Start(Scan());
  Message reply = Reply(outbox_.TakeMessages()[0]);
  SetFrameChecksums(reply);
  reply.envelope.set_frame_checksums(1, 1);
  engine_.Receive(now_, reply, outbox_);
  EXPECT_THAT(results_, IsEmpty());
  const std::vector<Message> again = After(absl::Seconds(1));
  ASSERT_THAT(again, SizeIs(1));
  Give(Reply(again[0]));
  ASSERT_THAT(results_, SizeIs(1));
  EXPECT_TRUE(results_[0].status.ok());
  EXPECT_EQ(engine_.counters().damaged, 1);
}

TEST_F(ScanTest, AWrongPieceFailsByName) {
  const auto wrong = [&](const std::function<void(Message&, proto::ScannedRows&)>& change,
                         absl::string_view why, uint64_t first = 0) {
    const absl::Status status = Answered(change, first);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << why << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(why)));
  };
  const auto as_it_is = [](Message&, proto::ScannedRows&) {};
  EXPECT_TRUE(Answered(as_it_is).ok());
  // A reader would go round for ever, or into another shard.
  wrong(as_it_is, "does not end between", MixBits(keys_[3]) + 1);
  wrong([](auto&, auto& scanned) { scanned.set_last(uint64_t{1} << 63); }, "does not end between");
  wrong(as_it_is, "is out of order", MixBits(keys_[0]) + 1);
  wrong(
      [&](Message& m, auto&) {
        m.frames[0] = BufferOf(Keys{keys_[0], keys_[2], keys_[1]});
      },
      "is out of order");
  wrong(
      [&](Message& m, auto&) {
        m.frames[0] = BufferOf(Keys{keys_[0], keys_[0], keys_[1]});
      },
      "is out of order");
  wrong([&](auto&, auto& scanned) { scanned.set_last(MixBits(keys_[1])); }, "is out of order");
  wrong([&](auto&, auto& scanned) { scanned.set_last(MixBits(keys_[2])); },
        absl::StrCat("the removed key ", keys_[3], " is outside"));
  wrong([](auto&, auto& scanned) { scanned.set_rows(4); }, "names 4 rows and 1 removed keys");
  wrong([](auto&, auto& scanned) { scanned.set_rows(~uint32_t{0}); }, "frames of other sizes");
  wrong([](auto&, auto& scanned) { scanned.set_removed(~uint32_t{0}); }, "frames of other sizes");
  wrong([](auto&, auto& scanned) { scanned.set_removed(0); }, "has 3 frames");
  wrong([](Message& m, auto&) { m.frames[1] = BufferOf(Floats{1, 2, 3, 4, 5}); }, "other sizes");
  wrong([](Message& m, auto&) { m.frames.clear(); }, "has 0 frames");
}

TEST_F(ScanTest, BeginningAgainIsTheReadersPart) {
  const absl::Status status = Answered([](Message& reply, auto&) {
    reply.frames.clear();
    SetStatus(absl::OutOfRangeError("read all rows again"), reply);
  });
  EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
  // Another head is asked as the first one was.
  Start(Scan());
  ASSERT_THAT(outbox_.TakeMessages(), SizeIs(1));
  ShowView(SparseView(3, kServerB, {.generation = 2}));
  const std::vector<Message> again = After(absl::Seconds(1));
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again[0].envelope.pull_request().shard_generation(), 2);
  EXPECT_EQ(again[0].envelope.pull_request().scan().generation(), 1);
}

TEST_F(ScanTest, WhatDoesNotFitTheTableIsRefused) {
  Operation wide = Scan();
  wide.scan->width = 3;
  EXPECT_TRUE(absl::IsInvalidArgument(engine_.Start(kStart, std::move(wide), outbox_)));
  Operation both = Scan();
  both.shard_count = 2;
  EXPECT_TRUE(absl::IsInvalidArgument(engine_.Start(kStart, std::move(both), outbox_)));
  Operation beyond = Scan();
  beyond.first_shard = ShardIndex(2);
  EXPECT_TRUE(absl::IsInvalidArgument(engine_.Start(kStart, std::move(beyond), outbox_)));
  ShowView(View(4, kServerA, kServerB));
  EXPECT_TRUE(absl::IsInvalidArgument(engine_.Start(kStart, Scan(), outbox_)));
}

}  // namespace
}  // namespace covey::client
