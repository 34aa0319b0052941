// SPDX-License-Identifier: Apache-2.0
// Valid files with random changes. A reader must not crash, and what it accepts must have one
// meaning: written again and read again, it is the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/random.h"
#include "common/format/npy.h"
#include "common/format/safetensors_reader.h"
#include "common/format/safetensors_writer.h"
#include "common/format/testing/file_text.h"
#include "common/format/testing/golden_npy.h"
#include "common/format/testing/golden_safetensors.h"

namespace covey {
namespace {

constexpr int kMutations = 20'000;

// Pieces of both formats, so that many changed files are still valid, or nearly.
constexpr const char* kPieces[] = {"{",
                                   "}",
                                   "[",
                                   "]",
                                   "(",
                                   ")",
                                   ",",
                                   ":",
                                   "\"",
                                   "'",
                                   "0",
                                   "1",
                                   "-",
                                   "9",
                                   "e3",
                                   " ",
                                   "\n",
                                   "\\u0000",
                                   "F32",
                                   "F16",
                                   "BF16",
                                   "U8",
                                   "F4",
                                   "<f4",
                                   "<f2",
                                   ">f4",
                                   "|O",
                                   "dtype",
                                   "shape",
                                   "data_offsets",
                                   "descr",
                                   "fortran_order",
                                   "True",
                                   "False",
                                   "__metadata__",
                                   "9223372036854775807",
                                   "4294967296",
                                   "\xff",
                                   "\xc3\xa9"};

// `text` with one to four changes.
std::string Mutated(std::string text, Random& random) {
  for (uint64_t left = 1 + random.Below(4); left > 0 && !text.empty(); --left) {
    const size_t place = random.Below(text.size());
    const size_t length = std::min<size_t>(1 + random.Below(12), text.size() - place);
    switch (random.Below(6)) {
      case 0:
        text[place] = static_cast<char>(random.Below(256));
        break;
      case 1:
        text[place] = static_cast<char>(text[place] ^ 1 << random.Below(8));
        break;
      case 2:
        text.erase(place, length);
        break;
      case 3:
        text.insert(place, text.substr(random.Below(text.size()), length));
        break;
      case 4:
        text.insert(place, kPieces[random.Below(std::size(kPieces))]);
        break;
      case 5:
        // One digit for another.
        if (text[place] >= '0' && text[place] <= '9') {
          text[place] = static_cast<char>('0' + random.Below(10));
        }
        break;
    }
  }
  return text;
}

template <typename Golden, size_t kSize>
std::string Choose(const Golden (&golden)[kSize], Random& random) {
  return absl::HexStringToBytes(golden[random.Below(kSize)].file);
}

TEST(MutationTest, Safetensors) {
  int accepted = 0;
  for (int seed = 0; seed < kMutations; ++seed) {
    Random random(seed);
    const std::string valid = Choose(kGoldenSafetensors, random);
    std::string file;
    // Half of the changes leave the sizes right, or nearly all files would be refused for these.
    if (random.Chance(0.5)) {
      file = Mutated(valid, random);
    } else {
      const auto head_bytes = SafetensorsHeadBytes(BytesOf(valid), valid.size()).value();
      file = HeadOf(Mutated(valid.substr(8, head_bytes - 8), random)) + valid.substr(head_bytes);
    }
    const auto content = ReadSafetensors(file);
    if (!content.ok()) {
      ASSERT_EQ(content.status().code(), absl::StatusCode::kInvalidArgument) << seed;
      ASSERT_FALSE(content.status().message().empty()) << seed;
      continue;
    }
    ++accepted;
    std::vector<SafetensorsTensor> tensors;
    uint64_t data_bytes = 0;
    for (const PlacedTensor& placed : content->tensors) {
      tensors.push_back(placed.tensor);
      ASSERT_EQ(placed.end - placed.begin, placed.tensor.Bytes().value()) << seed;
      ASSERT_LE(placed.end, file.size()) << seed;
      data_bytes += placed.end - placed.begin;
    }
    const std::string again =
        SafetensorsHead(tensors, content->notes) + std::string(data_bytes, '\0');
    const auto reread = ReadSafetensors(again);
    ASSERT_TRUE(reread.ok()) << seed << ": " << reread.status();
    ASSERT_EQ(reread->notes, content->notes) << seed;
    ASSERT_EQ(reread->tensors.size(), tensors.size()) << seed;
    for (size_t i = 0; i < tensors.size(); ++i) {
      ASSERT_EQ(reread->tensors[i].tensor, tensors[i]) << seed;
      ASSERT_EQ(again.size() - reread->tensors[i].end, file.size() - content->tensors[i].end);
    }
  }
  // Else the changes were too coarse to test more than refusals.
  EXPECT_GT(accepted, kMutations / 50);
  RecordProperty("accepted", accepted);
}

TEST(MutationTest, Npy) {
  int accepted = 0;
  for (int seed = 0; seed < kMutations; ++seed) {
    Random random(seed);
    const std::string file = Mutated(Choose(kGoldenNpy, random), random);
    const auto array = ReadNpy(file);
    if (!array.ok()) {
      ASSERT_EQ(array.status().code(), absl::StatusCode::kInvalidArgument) << seed;
      ASSERT_FALSE(array.status().message().empty()) << seed;
      continue;
    }
    ++accepted;
    ASSERT_LE(array->begin, file.size()) << seed;
    const std::string head = NpyHead(array->format, array->shape);
    const auto reread = ReadNpy(head + file.substr(array->begin));
    ASSERT_TRUE(reread.ok()) << seed << ": " << reread.status();
    ASSERT_EQ(reread->format, array->format) << seed;
    ASSERT_EQ(reread->shape, array->shape) << seed;
  }
  EXPECT_GT(accepted, kMutations / 50);
  RecordProperty("accepted", accepted);
}

}  // namespace
}  // namespace covey
