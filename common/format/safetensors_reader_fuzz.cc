// SPDX-License-Identifier: Apache-2.0
// Safetensors files: the JSON text of a head, whose length is made right, as the first part, and
// the data; or, after a first part that is empty, a whole file.
#include "common/format/safetensors_reader.h"

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/format/safetensors_writer.h"
#include "common/format/testing/file_text.h"
#include "common/format/testing/golden_safetensors.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {

std::vector<std::string> FuzzSeeds() {
  std::vector<std::string> seeds;
  for (const auto& golden : kGoldenSafetensors) {
    const std::string file = absl::HexStringToBytes(golden.file);
    const uint64_t head = SafetensorsHeadBytes(BytesOf(file), file.size()).value();
    seeds.push_back(JoinFuzzParts({""}) + file);
    seeds.push_back(JoinFuzzParts({file.substr(8, head - 8)}) + file.substr(head));
  }
  return seeds;
}

bool FuzzOne(std::span<const uint8_t> input) {
  const absl::string_view json = FuzzText(TakeFuzzPart(input));
  const std::string file =
      absl::StrCat(json.empty() ? std::string() : HeadOf(json), FuzzText(input));
  const auto content = ReadSafetensors(file);
  if (!content.ok()) {
    COVEY_CHECK(content.status().code() == absl::StatusCode::kInvalidArgument);
    COVEY_CHECK(!content.status().message().empty());
    return false;
  }
  // A file that is accepted is the same after it has been written and read again.
  std::vector<SafetensorsTensor> tensors;
  uint64_t data_bytes = 0;
  for (const PlacedTensor& placed : content->tensors) {
    tensors.push_back(placed.tensor);
    COVEY_CHECK(placed.end - placed.begin == placed.tensor.Bytes().value());
    COVEY_CHECK(placed.end <= file.size());
    data_bytes += placed.end - placed.begin;
  }
  const std::string again =
      SafetensorsHead(tensors, content->notes) + std::string(data_bytes, '\0');
  const auto reread = ReadSafetensors(again);
  COVEY_CHECK(reread.ok());
  COVEY_CHECK(reread->notes == content->notes);
  COVEY_CHECK(reread->tensors.size() == tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    COVEY_CHECK(reread->tensors[i].tensor == tensors[i]);
    COVEY_CHECK(again.size() - reread->tensors[i].end == file.size() - content->tensors[i].end);
  }
  return true;
}

}  // namespace covey
