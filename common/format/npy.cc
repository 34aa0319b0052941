// SPDX-License-Identifier: Apache-2.0
#include "common/format/npy.h"

#include <algorithm>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace covey {
namespace {

constexpr absl::string_view kMagic = "\x93NUMPY";
constexpr size_t kVersionPlace = 6;
constexpr size_t kLengthPlace = 8;
constexpr size_t kAlignment = 64;

// What the text says, before it is judged.
struct Description {
  std::optional<std::string> type;
  std::optional<bool> is_fortran;
  std::optional<std::vector<uint64_t>> shape;
};

// Reads the text, a Python literal, from left to right. Each method takes what it is named after,
// or fails with the place.
class TextReader {
 public:
  // `first_byte`: the text's place in the file.
  TextReader(absl::string_view text, uint64_t first_byte)
      : rest_(text), first_byte_(first_byte), bytes_(text.size()) {}

  absl::StatusOr<Description> Read();

 private:
  absl::Status Fail(absl::string_view reason) const {
    return absl::InvalidArgumentError(
        absl::StrCat("byte ", first_byte_ + bytes_ - rest_.size(), ": ", reason));
  }
  // Takes spaces, then `symbol` if it is there.
  bool Take(absl::string_view symbol);
  absl::Status Expect(absl::string_view symbol);
  absl::StatusOr<std::string> TakeText();
  absl::StatusOr<bool> TakeBoolean();
  absl::StatusOr<uint64_t> TakeNumber();
  absl::StatusOr<std::vector<uint64_t>> TakeTuple();
  // The value of one key.
  absl::Status TakeValue(absl::string_view key, Description& description);

  absl::string_view rest_;
  const uint64_t first_byte_;
  const size_t bytes_;
};

bool TextReader::Take(absl::string_view symbol) {
  while (absl::ConsumePrefix(&rest_, " ")) {
  }
  return absl::ConsumePrefix(&rest_, symbol);
}

absl::Status TextReader::Expect(absl::string_view symbol) {
  return Take(symbol) ? absl::OkStatus() : Fail(absl::StrCat("'", symbol, "' is missing"));
}

absl::StatusOr<std::string> TextReader::TakeText() {
  const absl::string_view quote = Take("'") ? "'" : "\"";
  if (quote == "\"" && !Take(quote)) return Fail("a text in quotation marks is missing");
  const size_t end = rest_.find(quote);
  if (end == rest_.npos) return Fail("a text does not end");
  const absl::string_view text = rest_.substr(0, end);
  if (!std::all_of(text.begin(), text.end(), [](char byte) {
        return absl::ascii_isprint(static_cast<uint8_t>(byte)) && byte != '\\';
      })) {
    return Fail("a text with an escaped, a control or a non-ASCII character");
  }
  rest_.remove_prefix(end + 1);
  return std::string(text);
}

absl::StatusOr<bool> TextReader::TakeBoolean() {
  if (Take("False")) return false;
  if (Take("True")) return true;
  return Fail("False or True is missing");
}

absl::StatusOr<uint64_t> TextReader::TakeNumber() {
  Take("");
  size_t digits = 0;
  while (digits < rest_.size() && absl::ascii_isdigit(static_cast<uint8_t>(rest_[digits]))) {
    ++digits;
  }
  if (digits == 0) return Fail("a number is missing");
  if (digits > 1 && rest_[0] == '0') return Fail("a number begins with 0");
  uint64_t number = 0;
  if (!absl::SimpleAtoi(rest_.substr(0, digits), &number) || number > NpyLimits::kNumber) {
    return Fail("a number is beyond 2^63 - 1");
  }
  rest_.remove_prefix(digits);
  return number;
}

absl::StatusOr<std::vector<uint64_t>> TextReader::TakeTuple() {
  COVEY_RETURN_IF_ERROR(Expect("("));
  std::vector<uint64_t> numbers;
  while (!Take(")")) {
    COVEY_ASSIGN_OR_RETURN(const uint64_t number, TakeNumber());
    if (numbers.size() == NpyLimits::kExtents) {
      return Fail(absl::StrCat("more than ", NpyLimits::kExtents, " extents"));
    }
    numbers.push_back(number);
    // Without a comma, (3) is a number in Python.
    if (Take(",")) continue;
    if (numbers.size() < 2) return Fail("',' is missing");
    COVEY_RETURN_IF_ERROR(Expect(")"));
    break;
  }
  return numbers;
}

absl::Status TextReader::TakeValue(absl::string_view key, Description& description) {
  const bool is_second = (key == "descr" && description.type.has_value()) ||
                         (key == "fortran_order" && description.is_fortran.has_value()) ||
                         (key == "shape" && description.shape.has_value());
  if (is_second) return Fail(absl::StrCat("the key '", key, "' occurs twice"));
  if (key == "descr") {
    if (Take("[")) return Fail("the type is a structure; a file of numbers is needed");
    COVEY_ASSIGN_OR_RETURN(description.type, TakeText());
  } else if (key == "fortran_order") {
    COVEY_ASSIGN_OR_RETURN(description.is_fortran, TakeBoolean());
  } else if (key == "shape") {
    COVEY_ASSIGN_OR_RETURN(description.shape, TakeTuple());
  } else {
    return Fail(absl::StrCat("unknown key '", key.substr(0, 32), "'"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Description> TextReader::Read() {
  Description description;
  COVEY_RETURN_IF_ERROR(Expect("{"));
  while (!Take("}")) {
    COVEY_ASSIGN_OR_RETURN(const std::string key, TakeText());
    COVEY_RETURN_IF_ERROR(Expect(":"));
    COVEY_RETURN_IF_ERROR(TakeValue(key, description));
    if (Take(",")) continue;
    COVEY_RETURN_IF_ERROR(Expect("}"));
    break;
  }
  if (!Take("\n")) return Fail("the newline at the end is missing");
  if (!rest_.empty()) return Fail("more text after the newline");
  return description;
}

const char* TypeName(WireFormat format) {
  switch (format) {
    case WireFormat::kFloat32:
      return "<f4";
    case WireFormat::kFloat16:
      return "<f2";
    case WireFormat::kBfloat16:
    case WireFormat::kInt8Block:
    case WireFormat::kFloat16Block:
    case WireFormat::kFloat8Block:
    case WireFormat::kTopBlock:
      break;
  }
  return nullptr;
}

absl::StatusOr<WireFormat> FormatNamed(absl::string_view type) {
  for (const WireFormat format : kWireFormats) {
    if (NpyHas(format) && TypeName(format) == type) return format;
  }
  const auto fail = [type](absl::string_view reason) {
    return absl::InvalidArgumentError(absl::StrCat("type '", type.substr(0, 32), "': ", reason));
  };
  if (absl::StrContains(type, "O")) {
    return fail("pickled Python objects, which are never loaded; save an array of float32");
  }
  if (absl::StartsWith(type, ">")) {
    return fail("big-endian; save array.astype('<f4') instead");
  }
  return fail("only float32 ('<f4') and float16 ('<f2') are read; save array.astype('<f4')");
}

// INVALID_ARGUMENT: beyond 2^64 bytes when extents of 0 are left out.
absl::StatusOr<uint64_t> BytesOf(WireFormat format, std::span<const uint64_t> shape) {
  uint64_t bytes = EncodedBytes(format, 1);
  bool is_empty = false;
  for (const uint64_t extent : shape) {
    if (extent == 0) {
      is_empty = true;
    } else if (__builtin_mul_overflow(bytes, extent, &bytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the shape (", absl::StrJoin(shape, ", "), ") has more than 2^64 bytes"));
    }
  }
  return is_empty ? 0 : bytes;
}

}  // namespace

absl::StatusOr<uint64_t> NpyHeadBytes(std::span<const uint8_t> prefix, uint64_t file_bytes) {
  if (prefix.size() < kNpyPrefixBytes || file_bytes < kNpyPrefixBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no NPY file is so short: ", std::min<uint64_t>(prefix.size(), file_bytes), " bytes"));
  }
  if (!std::equal(kMagic.begin(), kMagic.end(), prefix.begin(),
                  [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; })) {
    return absl::InvalidArgumentError("byte 0: an NPY file begins with \\x93NUMPY");
  }
  const uint8_t major = prefix[kVersionPlace];
  const uint8_t minor = prefix[kVersionPlace + 1];
  if (major < 1 || major > 3 || minor != 0) {
    return absl::InvalidArgumentError(absl::StrCat("byte ", kVersionPlace, ": version ", major, ".",
                                                   minor, "; 1.0, 2.0 and 3.0 are known"));
  }
  const size_t length_bytes = major == 1 ? 2 : 4;
  uint64_t text_bytes = 0;
  for (size_t byte = length_bytes; byte-- > 0;) {
    text_bytes = text_bytes << 8 | prefix[kLengthPlace + byte];
  }
  if (text_bytes > NpyLimits::kTextBytes) {
    return absl::InvalidArgumentError(absl::StrCat("byte ", kLengthPlace, ": a head of ",
                                                   text_bytes, " bytes; at most ",
                                                   NpyLimits::kTextBytes, " are allowed"));
  }
  const uint64_t head_bytes = kLengthPlace + length_bytes + text_bytes;
  if (head_bytes < kNpyPrefixBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("byte ", kLengthPlace, ": no head is so short: ", head_bytes, " bytes"));
  }
  if (head_bytes > file_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("byte ", kLengthPlace, ": a head of ",
                                                   head_bytes, " bytes, and the file has ",
                                                   file_bytes));
  }
  return head_bytes;
}

absl::StatusOr<NpyArray> ReadNpyHead(std::span<const uint8_t> head, uint64_t file_bytes) {
  COVEY_ASSIGN_OR_RETURN(const uint64_t head_bytes, NpyHeadBytes(head, file_bytes));
  if (head.size() != head_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the head has ", head_bytes, " bytes; given are ", head.size()));
  }
  const size_t text_place = kLengthPlace + (head[kVersionPlace] == 1 ? 2 : 4);
  const auto text = head.subspan(text_place);
  COVEY_ASSIGN_OR_RETURN(
      const Description description,
      TextReader({reinterpret_cast<const char*>(text.data()), text.size()}, text_place).Read());
  if (!description.type.has_value())
    return absl::InvalidArgumentError("the key 'descr' is missing");
  if (!description.is_fortran.has_value()) {
    return absl::InvalidArgumentError("the key 'fortran_order' is missing");
  }
  if (!description.shape.has_value())
    return absl::InvalidArgumentError("the key 'shape' is missing");
  if (*description.is_fortran) {
    return absl::InvalidArgumentError(
        "fortran_order: the array is column-major; save numpy.ascontiguousarray(array) instead");
  }
  NpyArray array{.shape = *description.shape, .begin = head_bytes};
  COVEY_ASSIGN_OR_RETURN(array.format, FormatNamed(*description.type));
  COVEY_ASSIGN_OR_RETURN(const uint64_t bytes, BytesOf(array.format, array.shape));
  if (bytes != file_bytes - head_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("byte ", head_bytes, ": the array has ", bytes,
                                                   " bytes, and ", file_bytes - head_bytes,
                                                   " follow in the file"));
  }
  return array;
}

bool NpyHas(WireFormat format) { return TypeName(format) != nullptr; }

namespace {

std::string HeadOf(absl::string_view type, std::span<const uint64_t> shape) {
  std::string text = absl::StrCat("{'descr': '", type, "', 'fortran_order': False, 'shape': (",
                                  absl::StrJoin(shape, ", "), shape.size() == 1 ? "," : "", "), }");
  const size_t used = kLengthPlace + 2 + text.size() + 1;
  text.append((kAlignment - used % kAlignment) % kAlignment, ' ');
  text.push_back('\n');
  const char prefix[] = {1, 0, static_cast<char>(text.size()), static_cast<char>(text.size() >> 8)};
  return absl::StrCat(kMagic, absl::string_view(prefix, sizeof prefix), text);
}

}  // namespace

std::string NpyHead(WireFormat format, std::span<const uint64_t> shape) {
  COVEY_CHECK(NpyHas(format));
  COVEY_CHECK(shape.size() <= NpyLimits::kExtents);
  return HeadOf(TypeName(format), shape);
}

std::string NpyKeysHead(uint64_t count) { return HeadOf("<u8", {&count, 1}); }

}  // namespace covey
