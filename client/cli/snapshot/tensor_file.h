// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tensor/wire_format.h"

namespace covey::cli {

// A file whose bytes are read where they are asked for. Blocks. Errors name path and offset.
class InputFile {
 public:
  // INVALID_ARGUMENT: no regular file. Others: it cannot be opened.
  static absl::StatusOr<std::unique_ptr<InputFile>> Open(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // When it was opened.
  uint64_t bytes() const { return bytes_; }
  // Fills `bytes` from this offset on. OUT_OF_RANGE: the file ends before.
  absl::Status Read(uint64_t offset, std::span<uint8_t> bytes) const;

 private:
  InputFile(std::string path, int descriptor, uint64_t bytes);

  const std::string path_;
  const int descriptor_;
  const uint64_t bytes_;
};

// A tensor in a file of another program.
struct StoredTensor {
  std::string name;
  // Slowest extent first; of a scalar: 1.
  std::vector<uint64_t> shape;
  // Float32, float16 or bfloat16. Nothing: of another type, `type`.
  std::optional<WireFormat> format;
  std::string type;
  // The place of its first element in the file.
  uint64_t begin = 0;
};

// The tensors of a file in safetensors or NPY format, as its name's end says; the tensor of an NPY
// file has the file's name without the end. INVALID_ARGUMENT: the name ends otherwise, or the file
// breaks its format; names the path.
absl::StatusOr<std::vector<StoredTensor>> ReadTensorList(const std::string& path,
                                                         const InputFile& file);

}  // namespace covey::cli
