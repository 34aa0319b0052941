// SPDX-License-Identifier: Apache-2.0

// Pushes of gradients in factors: what each shard is sent, and when.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "client/testing/request_engine_fixture.h"
#include "common/tensor/codec.h"
#include "common/tensor/outer_product.h"

namespace covey::client {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr uint64_t kRows = 8;
constexpr uint64_t kColumns = 16;
// Shards of 72 and 56 elements; the border is in the middle of row 4. They have parts of five and
// of four rows, so that factors are smaller up to 3 terms in the first, and up to 2 in the second.
constexpr MatrixRange kShards[] = {{.first_element = 0, .elements = 72, .columns = kColumns},
                                   {.first_element = 72, .elements = 56, .columns = kColumns}};

class OuterProductsTest : public RequestEngineTest {
 protected:
  OuterProductsTest() { ShowView(MatrixView(2, kServerA, kServerB)); }

  static std::shared_ptr<const ClusterView> MatrixView(uint64_t epoch, uint64_t first,
                                                       uint64_t second) {
    proto::ClusterView view = View(epoch, first, second)->proto();
    proto::Table& table = *view.mutable_tables(0);
    table.mutable_spec()->clear_shape();
    table.mutable_spec()->add_shape(kRows);
    table.mutable_spec()->add_shape(2);
    table.mutable_spec()->add_shape(kColumns / 2);
    for (int i = 0; i < 2; ++i) {
      table.mutable_shards(i)->set_first_element(kShards[i].first_element);
      table.mutable_shards(i)->set_element_count(kShards[i].elements);
    }
    return *ClusterView::Make(std::move(view));
  }

  Operation PushFactors(size_t terms, WireFormat format = WireFormat::kFloat32) {
    left_.resize(terms * kRows);
    right_.resize(terms * kColumns);
    for (size_t i = 0; i < left_.size(); ++i) left_[i] = static_cast<float>(i % 5) - 2;
    for (size_t i = 0; i < right_.size(); ++i) right_[i] = static_cast<float>(i % 7) - 3;
    Operation push = PushAll();
    push.gradient = {};
    push.factors = Factors{.terms = terms, .left = left_, .right = right_};
    push.format = format;
    return push;
  }
  std::vector<Message> Sent(Operation operation) {
    Start(std::move(operation));
    std::vector<Message> sent = outbox_.TakeMessages();
    EXPECT_EQ(sent.size(), 2u);
    return sent;
  }
  static uint32_t TermsOf(const Message& message) {
    return message.envelope.push_request().outer_product().terms();
  }
  // The elements that the frame stands for.
  static std::vector<float> ElementsIn(const Message& message, size_t shard) {
    const auto format = static_cast<WireFormat>(message.envelope.push_request().format());
    const MatrixRange& range = kShards[shard];
    std::vector<float> elements(range.elements);
    if (TermsOf(message) == 0) {
      Decode(format, message.frames[0].bytes(), elements);
    } else {
      const size_t terms = TermsOf(message);
      std::vector<float> memory(terms * (range.rows() + range.columns));
      SumOuterProducts(
          range, DecodeFactors(format, range, terms, message.frames[0].bytes(), memory), elements);
    }
    return elements;
  }
  std::vector<float> Expected(size_t shard) const {
    std::vector<float> elements(kShards[shard].elements);
    const size_t terms = left_.size() / kRows;
    SumOuterProducts(kShards[shard], {.terms = terms, .left = left_, .right = right_}, elements);
    return elements;
  }

  std::vector<float> left_;
  std::vector<float> right_;
};

TEST_F(OuterProductsTest, EachShardIsSentTheFactorsOfItsRows) {
  const std::vector<Message> sent = Sent(PushFactors(2));
  ASSERT_EQ(sent.size(), 2u);
  for (size_t shard : {0, 1}) {
    EXPECT_EQ(TermsOf(sent[shard]), 2u);
    EXPECT_EQ(sent[shard].envelope.push_request().samples(), 8u);
    EXPECT_EQ(sent[shard].frames[0].size(), 4 * 2 * (kShards[shard].rows() + kColumns));
    EXPECT_TRUE(CheckFrameChecksums(sent[shard]).ok());
    EXPECT_EQ(ElementsIn(sent[shard], shard), Expected(shard));
  }
  EXPECT_EQ(sent[1].frames[0].As<float>()[0], left_[4]) << "the first row of the second shard";
  EXPECT_EQ(engine_.bytes_in_flight(), sent[0].frames[0].size() + sent[1].frames[0].size());
  for (const Message& message : sent) Answer(message, 1);
  ASSERT_EQ(results_.size(), 1u) << "the caller's memory is not referred to";
  EXPECT_TRUE(results_[0].status.ok());
}

TEST_F(OuterProductsTest, AShardIsSentItsElementsWhereTheseAreSmaller) {
  for (const WireFormat format : kWireFormats) {
    if (NeedsFeedback(format)) continue;
    const std::vector<Message> sent = Sent(PushFactors(3, format));
    ASSERT_EQ(sent.size(), 2u);
    const bool factors = AreFactorsSmaller(format, kShards[0], 3);
    EXPECT_TRUE(factors == !HasBlocks(format)) << "for the scales of small blocks";
    EXPECT_EQ(TermsOf(sent[0]), factors ? 3u : 0u);
    EXPECT_FALSE(sent[1].envelope.push_request().has_outer_product());
    EXPECT_EQ(sent[1].frames[0].size(), EncodedBytes(format, kShards[1].elements));
    EXPECT_EQ(engine_.bytes_in_flight(), sent[0].frames[0].size() + sent[1].frames[0].size());
    // Above 16, float8 has even integers only.
    const double error = format == WireFormat::kFloat8Block ? 1 : 0.3;
    for (const size_t shard : {0, 1}) {
      const std::vector<float> elements = ElementsIn(sent[shard], shard);
      const std::vector<float> expected = Expected(shard);
      for (size_t i = 0; i < elements.size(); ++i) EXPECT_NEAR(elements[i], expected[i], error);
    }
    for (const Message& message : sent) Answer(message, 1);
  }
}

TEST_F(OuterProductsTest, AnyNumberOfTermsIsPushed) {
  const std::vector<Message> sent = Sent(PushFactors(5000));
  for (const size_t shard : {0, 1}) {
    EXPECT_EQ(TermsOf(sent[shard]), 0u);
    EXPECT_EQ(ElementsIn(sent[shard], shard), Expected(shard));
  }
}

TEST_F(OuterProductsTest, ARetrySendsTheSameBytesAndAQueryNone) {
  const std::vector<Message> sent = Sent(PushFactors(2));
  Refuse(sent[0], absl::UnavailableError("not now"));
  const std::vector<Message> again = After(absl::Seconds(1));
  ASSERT_FALSE(again.empty());
  EXPECT_EQ(again[0].frames[0].data(), sent[0].frames[0].data());
  EXPECT_EQ(TermsOf(again[0]), 2u);
  const std::vector<Message> queries = After(absl::Seconds(5));
  ASSERT_EQ(queries.size(), 2u);
  for (const Message& query : queries) {
    EXPECT_TRUE(query.frames.empty());
    EXPECT_EQ(TermsOf(query), 2u);
  }
}

TEST_F(OuterProductsTest, WhatIsNotDurableGoesToTheNewHeadInFactors) {
  const std::vector<Message> sent = Sent(PushFactors(2));
  Answer(sent[0], 1);
  Answer(sent[1], 1, kReceived);
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_FALSE(results_[0].durable);
  EXPECT_EQ(engine_.undurable_bytes(), sent[1].frames[0].size());
  const std::vector<float> expected = Expected(1);
  // The memory belongs to the caller again.
  std::fill(left_.begin(), left_.end(), 9.0f);
  std::fill(right_.begin(), right_.end(), 9.0f);
  ShowView(MatrixView(3, kServerA, kServerA));
  const std::vector<Message> again = After(absl::ZeroDuration());
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(TermsOf(again[0]), 2u);
  EXPECT_EQ(ElementsIn(again[0], 1), expected);
  EXPECT_TRUE(CheckFrameChecksums(again[0]).ok());
}

TEST_F(OuterProductsTest, RefusesWhatDoesNotFit) {
  const auto refusal = [this](Operation operation) {
    const absl::Status status = engine_.Start(kStart, std::move(operation), outbox_);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  Operation push = PushFactors(2);
  push.factors->left = std::span(left_).first(15);
  EXPECT_THAT(refusal(push), HasSubstr("table 'weights' has 8 rows and 16 columns; got 15 left and "
                                       "32 right elements in 2 terms"));
  push = PushFactors(2);
  push.factors->right = std::span(right_).first(16);
  EXPECT_THAT(refusal(push), HasSubstr("16 right elements"));
  push = PushFactors(2);
  push.factors->terms = 0;
  EXPECT_THAT(refusal(push), HasSubstr("in 0 terms"));
  push = PushFactors(2);
  push.shard_count = 1;
  EXPECT_THAT(refusal(push), HasSubstr("2 terms"));
  push = PushFactors(2);
  push.samples = 0;
  EXPECT_THAT(refusal(push), HasSubstr("at least 1 sample"));
  ShowView(View(3, kServerA, kServerB));
  push = PushFactors(1);
  EXPECT_THAT(refusal(push), HasSubstr("table 'weights' has one dimension"));
}

}  // namespace
}  // namespace covey::client
