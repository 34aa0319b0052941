// SPDX-License-Identifier: Apache-2.0
#include "tests/process/bit_equality_model.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/crc32c.h"
#include "common/base/random.h"

namespace covey {

std::vector<proto::TableSpec> BitEqualityTables() {
  std::vector<proto::TableSpec> tables;
  for (const auto& [name, elements] :
       {std::pair<const char*, uint64_t>{"large", 50'000}, {"medium", 5'000}, {"small", 10}}) {
    proto::TableSpec& table = tables.emplace_back();
    table.set_name(name);
    table.set_data_type(proto::FLOAT32);
    table.add_shape(elements);
    table.set_shard_bytes(16 << 10);
    table.mutable_initializer()->set_kind(proto::Initializer::UNIFORM);
    table.mutable_initializer()->set_a(-1);
    table.mutable_initializer()->set_b(1);
    table.mutable_initializer()->set_seed(tables.size());
    table.mutable_optimizer()->set_kind(proto::Optimizer::MOMENTUM);
    table.mutable_optimizer()->set_momentum(0.9);
    table.mutable_learning_rate()->set_base(0.1);
    table.mutable_learning_rate()->set_warmup_samples(40);
    table.mutable_contract()->set_kind(proto::Contract::BSP);
  }
  return tables;
}

uint64_t BitEqualitySamples(uint32_t member, uint64_t step) { return (3 * member + step) % 4; }

void BitEqualityGradient(uint32_t member, uint64_t step, std::span<const float> values,
                         std::span<float> gradient) {
  const uint64_t samples = BitEqualitySamples(member, step);
  for (size_t i = 0; i < values.size(); ++i) {
    float sum = 0;
    for (uint64_t sample = 0; sample < samples; ++sample) {
      const uint64_t example = MixBits(MixBits(member * 1000 + step) + sample);
      const float target = static_cast<float>(MixBits(example + i) >> 40) * 0x1p-23f - 1;
      sum += (values[i] - target) * (1 + 0.1f * values[i]);
    }
    gradient[i] = samples == 0 ? 0 : sum / static_cast<float>(samples);
  }
}

std::string BitEqualityLine(const std::string& table, std::span<const float> values) {
  return absl::StrFormat(
      "weights %s %08x", table,
      Crc32c({reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()}));
}

}  // namespace covey
