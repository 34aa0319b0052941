// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/fashion_mnist/dataset.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace covey::fashion_mnist {
namespace {

constexpr absl::string_view kAdvice =
    "install it with `apt-get install --reinstall dataset-fashion-mnist`, or name a folder that "
    "holds the dataset with --data-dir";

// Mean and standard deviation of the training pixels, scaled to [0, 1].
constexpr float kPixelMean = 0.2860f;
constexpr float kPixelDeviation = 0.3530f;

constexpr std::array<float, 256> NormalizedPixels() {
  std::array<float, 256> normalized{};
  for (size_t i = 0; i < normalized.size(); ++i) {
    normalized[i] = (static_cast<float>(i) / 255 - kPixelMean) / kPixelDeviation;
  }
  return normalized;
}
constexpr std::array<float, 256> kNormalizedPixels = NormalizedPixels();

absl::Status DamagedError(absl::string_view path, absl::string_view problem) {
  return absl::DataLossError(absl::StrCat("reading ", path, ": ", problem, "; ", kAdvice));
}

struct GzClose {
  void operator()(gzFile file) const { gzclose_r(file); }
};

// A gzip file that is read once, from front to back.
class GzipReader {
 public:
  static absl::StatusOr<GzipReader> Open(std::string path) {
    errno = 0;
    std::unique_ptr<gzFile_s, GzClose> file(gzopen(path.c_str(), "rb"));
    if (file == nullptr) {
      // When zlib lacks memory it does not set errno.
      const char* reason = errno != 0 ? std::strerror(errno) : "out of memory";
      return absl::NotFoundError(absl::StrCat("opening ", path, ": ", reason, "; ", kAdvice));
    }
    return GzipReader(std::move(path), std::move(file));
  }

  absl::Status ReadExactly(std::span<uint8_t> bytes) {
    COVEY_ASSIGN_OR_RETURN(const size_t count, Read(bytes));
    if (count == bytes.size()) return absl::OkStatus();
    return DamagedError(path_, absl::StrCat("the file ends ", bytes.size() - count,
                                            " bytes before the end of its data"));
  }

  // zlib also verifies here the checksum over everything that was read.
  absl::Status ExpectEnd() {
    uint8_t extra = 0;
    COVEY_ASSIGN_OR_RETURN(const size_t count, Read({&extra, 1}));
    if (count == 0) return absl::OkStatus();
    return DamagedError(path_, "there are bytes after the end of its data");
  }

 private:
  // Returns fewer bytes than requested only at the end of the file.
  absl::StatusOr<size_t> Read(std::span<uint8_t> bytes) {
    const int count = gzread(file_.get(), bytes.data(), static_cast<unsigned>(bytes.size()));
    int error = Z_OK;
    const char* reason = gzerror(file_.get(), &error);
    if (error == Z_ERRNO) return DamagedError(path_, std::strerror(errno));
    if (error == Z_BUF_ERROR) return DamagedError(path_, "the compressed file is truncated");
    if (error != Z_OK) {
      // zlib's message begins with the path, which ours already has.
      const absl::string_view problem = absl::StripPrefix(reason, absl::StrCat(path_, ": "));
      return DamagedError(path_, absl::StrCat("zlib refuses it: ", problem));
    }
    return static_cast<size_t>(std::max(count, 0));
  }

  GzipReader(std::string path, std::unique_ptr<gzFile_s, GzClose> file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  std::unique_ptr<gzFile_s, GzClose> file_;
};

absl::StatusOr<uint32_t> ReadBigEndian(GzipReader& reader) {
  std::array<uint8_t, 4> bytes{};
  COVEY_RETURN_IF_ERROR(reader.ReadExactly(bytes));
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

// An IDX file of bytes whose items have the dimensions `item_shape`:
//
//   4 bytes   magic 00 00 08 D: 08 means unsigned bytes, D is the number of dimensions that follow
//   4 bytes   big-endian number of items, then 4 bytes per dimension of an item
//   1 byte    per element
absl::StatusOr<std::vector<uint8_t>> ReadIdxFile(const std::string& path,
                                                 std::span<const uint32_t> item_shape) {
  COVEY_ASSIGN_OR_RETURN(GzipReader reader, GzipReader::Open(path));
  COVEY_ASSIGN_OR_RETURN(const uint32_t magic, ReadBigEndian(reader));
  const uint32_t magic_expected = 0x0800 + 1 + static_cast<uint32_t>(item_shape.size());
  if (magic != magic_expected) {
    return DamagedError(
        path, absl::StrCat("it begins with 0x", absl::Hex(magic, absl::kZeroPad8), " instead of 0x",
                           absl::Hex(magic_expected, absl::kZeroPad8)));
  }
  COVEY_ASSIGN_OR_RETURN(const uint32_t items, ReadBigEndian(reader));
  if (items == 0 || items > kImagesMax) {
    return DamagedError(
        path, absl::StrCat("its header says ", items, " items instead of 1 to ", kImagesMax));
  }
  size_t bytes = items;
  for (size_t i = 0; i < item_shape.size(); ++i) {
    COVEY_ASSIGN_OR_RETURN(const uint32_t dimension, ReadBigEndian(reader));
    if (dimension != item_shape[i]) {
      return DamagedError(path, absl::StrCat("dimension ", i + 1, " of its items is ", dimension,
                                             " instead of ", item_shape[i]));
    }
    bytes *= dimension;
  }
  std::vector<uint8_t> elements(bytes);
  COVEY_RETURN_IF_ERROR(reader.ReadExactly(elements));
  COVEY_RETURN_IF_ERROR(reader.ExpectEnd());
  return elements;
}

}  // namespace

Dataset::Dataset(std::vector<uint8_t> pixels, std::vector<uint8_t> labels)
    : pixels_(std::move(pixels)), labels_(std::move(labels)) {}

absl::StatusOr<Dataset> Dataset::Load(const std::string& directory, Split split) {
  const std::string prefix = absl::StrCat(directory, split == Split::kTrain ? "/train" : "/t10k");
  const std::string images_path = absl::StrCat(prefix, "-images-idx3-ubyte.gz");
  const std::string labels_path = absl::StrCat(prefix, "-labels-idx1-ubyte.gz");

  constexpr std::array<uint32_t, 2> kImageShape = {kImageSide, kImageSide};
  COVEY_ASSIGN_OR_RETURN(std::vector<uint8_t> pixels, ReadIdxFile(images_path, kImageShape));
  COVEY_ASSIGN_OR_RETURN(std::vector<uint8_t> labels, ReadIdxFile(labels_path, {}));
  if (labels.size() != pixels.size() / kImagePixels) {
    return DamagedError(
        labels_path, absl::StrCat("it has ", labels.size(), " labels, but ", images_path, " has ",
                                  pixels.size() / kImagePixels, " images"));
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < kClasses) continue;
    return DamagedError(labels_path, absl::StrCat("label ", i, " is ", labels[i],
                                                  " instead of 0 to ", kClasses - 1));
  }
  return Dataset(std::move(pixels), std::move(labels));
}

void Dataset::CopyBatch(std::span<const uint32_t> indices, std::span<float> images,
                        std::span<uint8_t> labels) const {
  COVEY_CHECK(images.size() == indices.size() * kImagePixels);
  COVEY_CHECK(labels.size() == indices.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    COVEY_CHECK(indices[i] < size());
    const uint8_t* pixels = &pixels_[indices[i] * kImagePixels];
    float* image = &images[i * kImagePixels];
    for (size_t j = 0; j < kImagePixels; ++j) image[j] = kNormalizedPixels[pixels[j]];
    labels[i] = labels_[indices[i]];
  }
}

}  // namespace covey::fashion_mnist
