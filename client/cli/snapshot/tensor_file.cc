// SPDX-License-Identifier: Apache-2.0
#include "client/cli/snapshot/tensor_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/format/npy.h"
#include "common/format/safetensors_reader.h"
#include "common/format/safetensors_tensor.h"

namespace covey::cli {
namespace {

std::vector<uint64_t> ShapeOf(const std::vector<uint64_t>& shape) {
  return shape.empty() ? std::vector<uint64_t>{1} : shape;
}

// The first bytes of the file, at most `most` of them.
absl::StatusOr<std::vector<uint8_t>> Start(const InputFile& file, uint64_t most) {
  std::vector<uint8_t> bytes(std::min(most, file.bytes()));
  COVEY_RETURN_IF_ERROR(file.Read(0, bytes));
  return bytes;
}

absl::StatusOr<std::vector<StoredTensor>> OfSafetensors(const InputFile& file) {
  COVEY_ASSIGN_OR_RETURN(const std::vector<uint8_t> prefix, Start(file, kSafetensorsPrefixBytes));
  COVEY_ASSIGN_OR_RETURN(const uint64_t head_bytes, SafetensorsHeadBytes(prefix, file.bytes()));
  COVEY_ASSIGN_OR_RETURN(const std::vector<uint8_t> head, Start(file, head_bytes));
  COVEY_ASSIGN_OR_RETURN(const SafetensorsContent content, ReadSafetensorsHead(head, file.bytes()));
  std::vector<StoredTensor> tensors;
  for (const PlacedTensor& placed : content.tensors) {
    tensors.push_back({.name = placed.tensor.name,
                       .shape = ShapeOf(placed.tensor.shape),
                       .format = WireFormatOf(placed.tensor.type),
                       .type = std::string(SafetensorsTypeName(placed.tensor.type)),
                       .begin = placed.begin});
  }
  return tensors;
}

absl::StatusOr<std::vector<StoredTensor>> OfNpy(absl::string_view name, const InputFile& file) {
  COVEY_ASSIGN_OR_RETURN(const std::vector<uint8_t> prefix, Start(file, kNpyPrefixBytes));
  COVEY_ASSIGN_OR_RETURN(const uint64_t head_bytes, NpyHeadBytes(prefix, file.bytes()));
  COVEY_ASSIGN_OR_RETURN(const std::vector<uint8_t> head, Start(file, head_bytes));
  COVEY_ASSIGN_OR_RETURN(const NpyArray array, ReadNpyHead(head, file.bytes()));
  return std::vector<StoredTensor>{{.name = std::string(name),
                                    .shape = ShapeOf(array.shape),
                                    .format = array.format,
                                    .type = "",
                                    .begin = array.begin}};
}

}  // namespace

InputFile::InputFile(std::string path, int descriptor, uint64_t bytes)
    : path_(std::move(path)), descriptor_(descriptor), bytes_(bytes) {}

InputFile::~InputFile() { close(descriptor_); }

absl::StatusOr<std::unique_ptr<InputFile>> InputFile::Open(const std::string& path) {
  // Without O_NONBLOCK, a named pipe would wait for a writer.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  }
  struct stat about = {};
  if (fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode)) {
    close(descriptor);
    return absl::InvalidArgumentError(absl::StrCat(path, " is no regular file"));
  }
  return std::unique_ptr<InputFile>(
      new InputFile(path, descriptor, static_cast<uint64_t>(about.st_size)));
}

absl::Status InputFile::Read(uint64_t offset, std::span<uint8_t> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path_, " at offset ", offset));
    }
    if (got == 0) {
      return absl::OutOfRangeError(absl::StrCat(path_, " ends at offset ", offset, "; it had ",
                                                bytes_, " bytes and was cut off"));
    }
    offset += static_cast<uint64_t>(got);
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<StoredTensor>> ReadTensorList(const std::string& path,
                                                         const InputFile& file) {
  absl::string_view name = path;
  absl::StatusOr<std::vector<StoredTensor>> tensors;
  if (absl::ConsumeSuffix(&name, ".safetensors")) {
    tensors = OfSafetensors(file);
  } else if (absl::ConsumeSuffix(&name, ".npy")) {
    tensors = OfNpy(name.substr(name.rfind('/') + 1), file);
  } else {
    tensors = absl::InvalidArgumentError("files that end in .safetensors or .npy can be imported");
  }
  if (tensors.ok()) return tensors;
  return Annotate(path, tensors.status());
}

}  // namespace covey::cli
