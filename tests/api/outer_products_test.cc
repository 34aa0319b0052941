// SPDX-License-Identifier: Apache-2.0

// Pushes of gradients in factors, through the public interface and real sockets.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/parameter_client.h"
#include "common/base/random.h"
#include "common/tensor/codec.h"
#include "common/tensor/wire_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/table.pb.h"
#include "tests/api/cluster.h"

namespace covey::client {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(20);
constexpr size_t kRows = 96;
constexpr size_t kColumns = 160;  // so that factors are smaller for less than 60 terms

proto::TableSpec Spec(const std::string& name, uint64_t shard_bytes = 0) {
  proto::TableSpec spec;
  spec.set_name(name);
  spec.set_data_type(proto::FLOAT32);
  spec.add_shape(kRows);
  spec.add_shape(kColumns);
  spec.set_shard_bytes(shard_bytes);
  spec.mutable_optimizer()->set_kind(proto::Optimizer::ADAM);
  spec.mutable_learning_rate()->set_base(0.01);
  spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
  return spec;
}

class OuterProductsTest : public ::testing::Test {
 protected:
  OuterProductsTest()
      : client_(ParameterClient::Connect(
                    {.scheduler = cluster_.scheduler(), .operation_deadline = kPatience})
                    .value()) {}

  OuterProducts Gradient(size_t terms) {
    const auto fill = [this](std::vector<float>& values, size_t count) {
      values.resize(count);
      for (float& value : values) value = static_cast<float>(random_.Uniform() * 2 - 1);
    };
    fill(left_, terms * kRows);
    fill(right_, terms * kColumns);
    return {.terms = terms, .left = left_, .right = right_};
  }
  static std::vector<float> Elements(const OuterProducts& gradient) {
    std::vector<float> elements(kRows * kColumns, 0.0f);
    for (size_t i = 0; i < elements.size(); ++i) {
      for (size_t t = 0; t < gradient.terms; ++t) {
        elements[i] +=
            gradient.left[t * kRows + i / kColumns] * gradient.right[t * kColumns + i % kColumns];
      }
    }
    return elements;
  }
  std::vector<float> Values(const Table& table) {
    std::vector<float> values(table.elements);
    EXPECT_TRUE(client_->Pull(table, values).Wait().ok());
    return values;
  }
  uint64_t BytesOf(const std::function<Handle()>& start) {
    const uint64_t before = client_->GetCounters()->bytes_sent;
    const Handle handle = start();
    EXPECT_TRUE(handle.Wait().ok()) << handle.result().status;
    EXPECT_TRUE(handle.result().durable);
    return client_->GetCounters()->bytes_sent - before;
  }

  const Cluster cluster_{{}};
  const std::unique_ptr<ParameterClient> client_;
  Random random_{1};
  std::vector<float> left_;
  std::vector<float> right_;
};

TEST_F(OuterProductsTest, MakeTheUpdateOfTheGradientForFewerBytes) {
  const Table in_factors = client_->CreateTable(Spec("factors")).value();
  const Table in_elements = client_->CreateTable(Spec("elements")).value();
  // In thirteen shards of seven rows and a part of one; their borders lie within rows.
  constexpr uint64_t kShards = 13;
  const Table in_shards = client_->CreateTable(Spec("shards", 77 * 64)).value();
  constexpr uint64_t kHeadersMax = 200;
  // A push to a server that does not know its table yet is sent twice.
  for (const Table& table : {in_factors, in_elements, in_shards}) Values(table);
  for (const size_t terms : {1, 4, 32, 59, 60, 200}) {
    SCOPED_TRACE(terms);
    const OuterProducts gradient = Gradient(terms);
    const uint64_t bytes =
        BytesOf([&] { return client_->Push(in_factors, gradient, {.samples = terms}); });
    const uint64_t frame = terms < 60 ? 4 * terms * (kRows + kColumns) : 4 * kRows * kColumns;
    EXPECT_GE(bytes, frame);
    EXPECT_LE(bytes, frame + kHeadersMax);
    const std::vector<float> elements = Elements(gradient);
    const uint64_t all =
        BytesOf([&] { return client_->Push(in_elements, elements, {.samples = terms}); });
    EXPECT_GE(all, 4 * kRows * kColumns);
    std::vector<float> pulled(in_shards.elements);
    const uint64_t to_shards =
        BytesOf([&] { return client_->PushPull(in_shards, gradient, pulled, {.samples = terms}); });
    EXPECT_LE(to_shards, all + kShards * kHeadersMax);
    if (terms == 4) {
      // The row of each border is sent to two shards.
      EXPECT_LE(to_shards,
                4 * terms * (kRows + kShards - 1 + kShards * kColumns) + kShards * kHeadersMax);
      EXPECT_LE(to_shards, all * 3 / 4);
    }
    const std::vector<float> expected = Values(in_elements);
    const std::vector<float> values = Values(in_factors);
    for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], expected[i], 1e-5) << i;
    EXPECT_EQ(pulled, values) << "the same bits, however the table is cut";
  }
}

TEST_F(OuterProductsTest, FormatsMakeThemSmaller) {
  const Table table = client_->CreateTable(Spec("w")).value();
  Values(table);  // so that its server knows it, and no push is sent twice
  for (const WireFormat format : kWireFormats) {
    if (NeedsFeedback(format)) continue;
    const OuterProducts gradient = Gradient(8);
    const uint64_t bytes =
        BytesOf([&] { return client_->Push(table, gradient, {.format = format}); });
    EXPECT_LE(bytes, EncodedRowBytes(format, kRows, 8) + EncodedRowBytes(format, kColumns, 8) + 200)
        << WireFormatName(format);
  }
}

TEST_F(OuterProductsTest, SaysWhatDoesNotFit) {
  const Table table = client_->CreateTable(Spec("w")).value();
  proto::TableSpec spec = Spec("flat");
  spec.mutable_shape()->RemoveLast();
  const Table flat = client_->CreateTable(spec).value();
  const auto message = [](const Handle& handle) { return std::string(handle.Wait().message()); };
  OuterProducts gradient = Gradient(2);
  EXPECT_THAT(message(client_->Push(flat, gradient)), HasSubstr("table 'flat' has one dimension"));
  gradient.terms = 3;
  EXPECT_THAT(message(client_->Push(table, gradient)), HasSubstr("96 rows and 160 columns"));
  std::vector<float> values(5);
  EXPECT_THAT(message(client_->PushPull(table, Gradient(2), values)),
              HasSubstr("5 value elements"));
}

}  // namespace
}  // namespace covey::client
