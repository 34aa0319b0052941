// SPDX-License-Identifier: Apache-2.0

// Rows travel as their table stores them, and programs get floats.

#include <string>
#include <vector>

#include "client/testing/request_engine_fixture.h"
#include "common/cluster/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Table 3 is sparse, with rows of this type, and two shards of half the slots each.
std::shared_ptr<const ClusterView> ViewOf(uint64_t epoch, proto::DataType type) {
  proto::ClusterView view = View(epoch, kServerA, kServerB)->proto();
  proto::Table& table = *view.mutable_tables(0);
  table.mutable_spec()->clear_shape();
  table.mutable_spec()->set_data_type(type);
  table.mutable_spec()->mutable_sparse()->set_width(2);
  for (proto::Shard& shard : *table.mutable_shards()) {
    shard.set_first_element(shard.index() * kKeySlots / 2);
    shard.set_element_count(kKeySlots / 2);
  }
  return *ClusterView::Make(std::move(view));
}

class RowTypesTest : public RequestEngineTest {
 protected:
  RowTypesTest() {
    batch_->Assign(std::vector<uint64_t>{3, 9, 3}, std::vector<uint64_t>{kKeySlots / 2, kKeySlots});
  }
  Operation Rows(bool pushes) {
    Operation operation = PushAll();
    operation.keyed = KeyedOperation{.batch = batch_, .pushes = pushes, .pulls = true};
    operation.gradient =
        pushes ? std::span<const float>(gradient_).first(4) : std::span<const float>();
    operation.values = values_;
    return operation;
  }
  // Each element of a shard's rows is this, in the bytes of `Word`.
  template <typename Word>
  void AnswerRows(const Message& request, Word element) {
    Message reply = ReplyTo(request);
    proto::PullReply& pull = *reply.envelope.mutable_pull_reply();
    pull.mutable_state()->set_version(1);
    const std::vector<Word> words(2 * request.envelope.pull_request().keys().count(), element);
    if (!words.empty()) {
      reply.frames.push_back(Buffer::CopyOf(
          {reinterpret_cast<const uint8_t*>(words.data()), words.size() * sizeof(Word)}));
    }
    SetFrameChecksums(reply);
    engine_.Receive(now_, reply, outbox_);
  }

  const std::shared_ptr<KeyBatch> batch_ = std::make_shared<KeyBatch>();
  std::vector<float> values_ = std::vector<float>(6);
};

TEST_F(RowTypesTest, ValuesAreDecodedByTheTablesType) {
  ShowView(ViewOf(2, proto::BFLOAT16));
  Start(Rows(false));
  EXPECT_EQ(engine_.bytes_in_flight(), 4 * 2);  // two rows of two
  for (const Message& request : outbox_.TakeMessages()) AnswerRows<uint16_t>(request, 0x3fc0);
  ASSERT_THAT(results_, SizeIs(1));
  EXPECT_TRUE(results_[0].status.ok()) << results_[0].status;
  EXPECT_THAT(values_, ElementsAre(1.5f, 1.5f, 1.5f, 1.5f, 1.5f, 1.5f));
  ShowView(ViewOf(3, proto::FLOAT16));
  Start(Rows(false));
  for (const Message& request : outbox_.TakeMessages()) AnswerRows<uint16_t>(request, 0xbc00);
  ASSERT_THAT(results_, SizeIs(2));
  EXPECT_THAT(values_, ElementsAre(-1, -1, -1, -1, -1, -1));
}

TEST_F(RowTypesTest, GradientsHaveAFormatOfTheirOwn) {
  ShowView(ViewOf(2, proto::BFLOAT16));
  Start(Rows(true));
  EXPECT_EQ(engine_.bytes_in_flight(), 4 * 4);
  size_t bytes = 0;
  for (const Message& request : outbox_.TakeMessages()) {
    EXPECT_EQ(request.envelope.push_request().format(), proto::WIRE_FLOAT32);
    if (!request.frames.empty()) bytes += request.frames.back().size();
  }
  EXPECT_EQ(bytes, 4 * 4);
}

TEST_F(RowTypesTest, RowsOfAnotherTypeAreRefused) {
  ShowView(ViewOf(2, proto::BFLOAT16));
  Start(Rows(false));
  for (const Message& request : outbox_.TakeMessages()) AnswerRows<float>(request, 1);
  ASSERT_THAT(results_, SizeIs(1));
  EXPECT_THAT(std::string(results_[0].status.message()), HasSubstr("an earlier version"));
  ShowView(ViewOf(3, static_cast<proto::DataType>(99)));
  EXPECT_THAT(std::string(engine_.Start(now_, Rows(false), outbox_).message()),
              HasSubstr("of type 99, which is unknown here"));
}

}  // namespace
}  // namespace covey::client
