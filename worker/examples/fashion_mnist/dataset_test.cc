#include "worker/examples/fashion_mnist/dataset.h"

#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::fashion_mnist {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string BigEndian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

// Image i is all pixels i.
std::string ImagesFile(uint32_t count) {
  std::string bytes = BigEndian(0x0803) + BigEndian(count) + BigEndian(28) + BigEndian(28);
  for (uint32_t i = 0; i < count; ++i) bytes.append(kImagePixels, static_cast<char>(i));
  return bytes;
}

std::string LabelsFile(const std::string& labels) {
  return BigEndian(0x0801) + BigEndian(static_cast<uint32_t>(labels.size())) + labels;
}

// A folder with a valid training split of three images; tests then spoil one file.
class DatasetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = absl::StrCat(::testing::TempDir(), "/dataset_XXXXXX");
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    WriteImages(ImagesFile(3));
    WriteLabels(LabelsFile({0, 9, 4}));
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string ImagesPath() const { return directory_ + "/train-images-idx3-ubyte.gz"; }
  std::string LabelsPath() const { return directory_ + "/train-labels-idx1-ubyte.gz"; }
  void WriteImages(const std::string& bytes) { WriteGzip(ImagesPath(), bytes); }
  void WriteLabels(const std::string& bytes) { WriteGzip(LabelsPath(), bytes); }

  static void WriteGzip(const std::string& path, const std::string& bytes) {
    gzFile file = gzopen(path.c_str(), "wb");
    ASSERT_NE(file, nullptr);
    ASSERT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())),
              static_cast<int>(bytes.size()));
    ASSERT_EQ(gzclose(file), Z_OK);
  }

  // Loading must fail with `code` and say all of `path`, `problem` and what to do.
  void ExpectError(absl::StatusCode code, const std::string& path, const std::string& problem) {
    const absl::Status status = Dataset::Load(directory_, Split::kTrain).status();
    EXPECT_EQ(status.code(), code) << status;
    const std::string message(status.message());
    EXPECT_THAT(message, HasSubstr(path));
    EXPECT_THAT(message, HasSubstr(problem));
    EXPECT_THAT(message, HasSubstr("dataset-fashion-mnist"));
    EXPECT_THAT(message, HasSubstr("--data-dir"));
  }

  std::string directory_;
};

TEST_F(DatasetTest, CopiesTheSamplesAskedFor) {
  const absl::StatusOr<Dataset> dataset = Dataset::Load(directory_, Split::kTrain);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(dataset->size(), 3);

  std::vector<float> images(2 * kImagePixels);
  std::vector<uint8_t> labels(2);
  const std::vector<uint32_t> indices = {2, 0};
  dataset->CopyBatch(indices, images, labels);
  EXPECT_THAT(labels, ElementsAre(4, 0));
  EXPECT_FLOAT_EQ(images[0], (2.0f / 255 - 0.2860f) / 0.3530f);
  EXPECT_FLOAT_EQ(images[kImagePixels - 1], images[0]);
  EXPECT_FLOAT_EQ(images[kImagePixels], -0.2860f / 0.3530f);
}

TEST_F(DatasetTest, SaysWhichFileIsMissing) {
  std::filesystem::remove(LabelsPath());
  ExpectError(absl::StatusCode::kNotFound, LabelsPath(), "No such file");
}

TEST_F(DatasetTest, SaysThatTheFolderIsMissing) {
  directory_ += "/nowhere";
  ExpectError(absl::StatusCode::kNotFound, directory_, "No such file");
}

TEST_F(DatasetTest, RefusesAnEmptyFile) {
  std::ofstream(ImagesPath(), std::ios::trunc);
  ExpectError(absl::StatusCode::kDataLoss, ImagesPath(), "ends 4 bytes before");
}

TEST_F(DatasetTest, RefusesAFolderInPlaceOfAFile) {
  std::filesystem::remove(ImagesPath());
  std::filesystem::create_directory(ImagesPath());
  ExpectError(absl::StatusCode::kDataLoss, ImagesPath(), "Is a directory");
}

TEST_F(DatasetTest, RefusesATruncatedCompressedFile) {
  std::filesystem::resize_file(ImagesPath(), std::filesystem::file_size(ImagesPath()) - 12);
  ExpectError(absl::StatusCode::kDataLoss, ImagesPath(), "truncated");
}

TEST_F(DatasetTest, RefusesATruncatedContent) {
  WriteImages(ImagesFile(3).substr(0, 16 + 3 * kImagePixels - 5));
  ExpectError(absl::StatusCode::kDataLoss, ImagesPath(), "ends 5 bytes before");
}

TEST_F(DatasetTest, RefusesBytesAfterTheContent) {
  WriteLabels(LabelsFile({1, 2, 3}) + "x");
  ExpectError(absl::StatusCode::kDataLoss, LabelsPath(), "bytes after");
}

TEST_F(DatasetTest, RefusesAFlippedBit) {
  std::fstream file(ImagesPath(), std::ios::in | std::ios::out | std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  // The checksum is the first half of the last eight bytes.
  file.seekp(static_cast<std::streamoff>(bytes.size()) - 8);
  file.put(static_cast<char>(bytes[bytes.size() - 8] ^ 1));
  file.close();
  ExpectError(absl::StatusCode::kDataLoss, ImagesPath(), "zlib refuses it");
}

TEST_F(DatasetTest, RefusesAnotherFormat) {
  WriteImages(LabelsFile({1, 2, 3}));
  ExpectError(absl::StatusCode::kDataLoss, ImagesPath(), "0x00000801 instead of 0x00000803");
}

TEST_F(DatasetTest, RefusesAnotherShape) {
  WriteImages(BigEndian(0x0803) + BigEndian(1) + BigEndian(28) + BigEndian(32) +
              std::string(28 * 32, '\0'));
  ExpectError(absl::StatusCode::kDataLoss, ImagesPath(), "dimension 2 of its items is 32");
}

TEST_F(DatasetTest, RefusesAbsurdCountsBeforeAllocating) {
  for (const uint32_t count : {uint32_t{0}, uint32_t{kImagesMax + 1}, ~uint32_t{0}}) {
    WriteImages(BigEndian(0x0803) + BigEndian(count) + BigEndian(28) + BigEndian(28));
    ExpectError(absl::StatusCode::kDataLoss, ImagesPath(), absl::StrCat("promises ", count));
  }
}

TEST_F(DatasetTest, RefusesALabelThatIsNoClass) {
  WriteLabels(LabelsFile({1, 10, 3}));
  ExpectError(absl::StatusCode::kDataLoss, LabelsPath(), "label 1 is 10");
}

TEST_F(DatasetTest, RefusesDifferentNumbersOfImagesAndLabels) {
  WriteLabels(LabelsFile({1, 2}));
  ExpectError(absl::StatusCode::kDataLoss, LabelsPath(), "has 2 labels, but");
}

}  // namespace
}  // namespace covey::fashion_mnist
