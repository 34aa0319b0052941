// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "client/testing/request_engine_fixture.h"
#include "common/cluster/limits.h"
#include "common/table/key_list.h"

// A list of keys is sent once to a server that keeps it, and then named.

namespace covey::client {
namespace {

using ::testing::SizeIs;

constexpr size_t kKeys = 1000;

// Table 3 is sparse, with two shards of half the slots each.
std::shared_ptr<const ClusterView> SparseView(uint64_t epoch, uint64_t first, uint64_t second,
                                              uint64_t generation = 1) {
  proto::ClusterView view = View(epoch, first, second, {.generation = generation})->proto();
  proto::Table& table = *view.mutable_tables(0);
  table.mutable_spec()->clear_shape();
  table.mutable_spec()->mutable_sparse()->set_width(1);
  for (proto::Shard& shard : *table.mutable_shards()) {
    shard.set_first_element(shard.index() * kKeySlots / 2);
    shard.set_element_count(kKeySlots / 2);
  }
  return *ClusterView::Make(std::move(view));
}

const proto::KeyList& ListOf(const Message& request) {
  return request.envelope.has_push_request() ? request.envelope.push_request().keys()
                                             : request.envelope.pull_request().keys();
}

class NamedKeysTest : public RequestEngineTest {
 protected:
  NamedKeysTest() {
    ShowView(SparseView(2, kServerA, kServerB));
    std::vector<uint64_t> keys(kKeys);
    std::iota(keys.begin(), keys.end(), 0);
    batch_->Assign(keys, std::vector<uint64_t>{kKeySlots / 2, kKeySlots});
  }

  Operation Rows(bool pushes, bool pulls) {
    Operation operation = PushAll();
    operation.keyed = KeyedOperation{.batch = batch_, .pushes = pushes, .pulls = pulls};
    operation.gradient = pushes ? std::span<const float>(rows_) : std::span<const float>();
    operation.values = pulls ? std::span<float>(values_) : std::span<float>();
    return operation;
  }
  std::vector<Message> Send(bool pushes, bool pulls) {
    Start(Rows(pushes, pulls));
    return outbox_.TakeMessages();
  }
  // The server keeps so many lists.
  void AnswerRows(const Message& request, uint32_t kept) {
    Message reply = ReplyTo(request);
    const bool is_push = request.envelope.has_push_request();
    if (is_push) {
      reply.envelope.mutable_push_reply()->mutable_state()->set_version(1);
      reply.envelope.mutable_push_reply()->set_durable(true);
      reply.envelope.mutable_push_reply()->set_key_lists_kept(kept);
    } else {
      reply.envelope.mutable_pull_reply()->mutable_state()->set_version(1);
      reply.envelope.mutable_pull_reply()->set_key_lists_kept(kept);
      reply.frames.push_back(Buffer::CopyOf(
          std::vector<uint8_t>(ListOf(request).count() * sizeof(float), uint8_t{0})));
    }
    SetFrameChecksums(reply);
    engine_.Receive(now_, reply, outbox_);
  }
  void SayUnknown(const Message& request) {
    Message reply = ReplyTo(request);
    if (request.envelope.has_push_request()) {
      reply.envelope.mutable_push_reply()->set_keys_unknown(true);
    } else {
      reply.envelope.mutable_pull_reply()->set_keys_unknown(true);
    }
    SetStatus(absl::UnavailableError("send the keys"), reply);
    engine_.Receive(now_, reply, outbox_);
  }
  // Pulls the rows, and both servers keep the list from then on.
  void PullOnce() {
    for (const Message& request : Send(false, true)) AnswerRows(request, 1);
    After(absl::ZeroDuration());
    ASSERT_THAT(results_, SizeIs(1));
    results_.clear();
  }

  const std::shared_ptr<KeyBatch> batch_ = std::make_shared<KeyBatch>();
  std::vector<float> rows_ = std::vector<float>(kKeys, 1.0f);
  std::vector<float> values_ = std::vector<float>(kKeys);
};

TEST_F(NamedKeysTest, TheSecondUseSendsNames) {
  const std::vector<Message> pulls = Send(false, true);
  ASSERT_THAT(pulls, SizeIs(2));
  for (const Message& pull : pulls) {
    EXPECT_THAT(pull.frames, SizeIs(1));
    EXPECT_FALSE(covey::NameOf(ListOf(pull)).is_none());
    AnswerRows(pull, 1);
  }
  EXPECT_NE(covey::NameOf(ListOf(pulls[0])), covey::NameOf(ListOf(pulls[1])));
  const uint64_t first_use = engine_.counters().key_bytes;
  EXPECT_GE(first_use, kKeys);
  std::vector<Message> pushes = Send(true, false);
  ASSERT_THAT(pushes, SizeIs(2));
  for (size_t i = 0; i < pushes.size(); ++i) {
    EXPECT_TRUE(IsNamed(ListOf(pushes[i])));
    EXPECT_EQ(covey::NameOf(ListOf(pushes[i])), covey::NameOf(ListOf(pulls[i])));
    EXPECT_EQ(ListOf(pushes[i]).count(), ListOf(pulls[i]).count());
    ASSERT_THAT(pushes[i].frames, SizeIs(1));
    EXPECT_EQ(pushes[i].frames[0].size(), ListOf(pushes[i]).count() * sizeof(float));
    AnswerRows(pushes[i], 1);
  }
  EXPECT_LE((engine_.counters().key_bytes - first_use) * 10, first_use);
  EXPECT_EQ(engine_.counters().unknown_lists, 0);
  // The operation ends when nobody holds its gradient.
  pushes.clear();
  After(absl::Milliseconds(10));
  ASSERT_THAT(results_, SizeIs(2));
  EXPECT_TRUE(results_[1].status.ok());
}

TEST_F(NamedKeysTest, KeysAreSentWhereNothingIsKept) {
  for (const Message& pull : Send(false, true)) AnswerRows(pull, 0);
  for (const Message& push : Send(true, true)) {
    EXPECT_FALSE(IsNamed(ListOf(push)));
    EXPECT_THAT(push.frames, SizeIs(2));
  }
}

TEST_F(NamedKeysTest, AnUnknownListCostsOneResend) {
  PullOnce();
  std::vector<Message> pushes = Send(true, false);
  ASSERT_THAT(pushes, SizeIs(2));
  AnswerRows(pushes[0], 1);
  SayUnknown(pushes[1]);
  std::vector<Message> again = After(absl::ZeroDuration());
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_FALSE(IsNamed(ListOf(again[0])));
  EXPECT_THAT(again[0].frames, SizeIs(2));
  EXPECT_EQ(again[0].envelope.header().request_id(), pushes[1].envelope.header().request_id());
  EXPECT_EQ(again[0].envelope.push_request().id().sequence(),
            pushes[1].envelope.push_request().id().sequence());
  AnswerRows(again[0], 1);
  pushes.clear();
  again.clear();
  After(absl::Milliseconds(10));
  ASSERT_THAT(results_, SizeIs(1));
  EXPECT_TRUE(results_[0].status.ok());
  EXPECT_EQ(engine_.counters().unknown_lists, 1);
  EXPECT_EQ(engine_.counters().repeats, 1);
  for (const Message& push : Send(true, false)) EXPECT_TRUE(IsNamed(ListOf(push)));
}

TEST_F(NamedKeysTest, AServerThatDoesNotWantKeysEitherIsNotPressed) {
  PullOnce();
  const std::vector<Message> pulls = Send(false, true);
  ASSERT_THAT(pulls, SizeIs(2));
  SayUnknown(pulls[1]);
  const std::vector<Message> again = After(absl::ZeroDuration());
  ASSERT_THAT(again, SizeIs(1));
  SayUnknown(again[0]);
  EXPECT_THAT(After(absl::ZeroDuration()), SizeIs(0));
  EXPECT_THAT(After(absl::Milliseconds(10)), SizeIs(1));
}

TEST_F(NamedKeysTest, AnotherHeadIsSentTheKeys) {
  PullOnce();
  ShowView(SparseView(3, kServerA, kServerA));
  const std::vector<Message> pushes = Send(true, false);
  ASSERT_THAT(pushes, SizeIs(2));
  EXPECT_TRUE(IsNamed(ListOf(pushes[0])));
  EXPECT_FALSE(IsNamed(ListOf(pushes[1])));
  // A push that has named its keys goes to the new head with them.
  ShowView(SparseView(4, kServerB, kServerA));
  const std::vector<Message> again = After(absl::ZeroDuration());
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again[0].to().node, NodeId(kServerB));
  EXPECT_FALSE(IsNamed(ListOf(again[0])));
  EXPECT_THAT(again[0].frames, SizeIs(2));
}

TEST_F(NamedKeysTest, ARepeatedPushAsksWithoutKeysAndRows) {
  PullOnce();
  ASSERT_THAT(Send(true, false), SizeIs(2));
  for (const Message& query : After(absl::Seconds(3))) {
    EXPECT_THAT(query.frames, SizeIs(0));
    EXPECT_GT(ListOf(query).count(), 0);
  }
}

}  // namespace
}  // namespace covey::client
