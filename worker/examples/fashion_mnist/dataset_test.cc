// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/fashion_mnist/dataset.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/examples/fashion_mnist/dataset_files.h"

namespace covey::fashion_mnist {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A folder with a valid training split of three images, of which tests then corrupt one file.
class DatasetTest : public ::testing::Test {
 protected:
  DatasetTest() {
    files_.WriteImages(ImagesFile(3));
    files_.WriteLabels(LabelsFile({0, 9, 4}));
  }

  // Loading must fail with `code`, and the message must contain `path`, `problem` and the remedy.
  void ExpectError(absl::StatusCode code, const std::string& path, const std::string& problem) {
    const absl::Status status = Dataset::Load(files_.directory(), Split::kTrain).status();
    EXPECT_EQ(status.code(), code) << status;
    const std::string message(status.message());
    EXPECT_THAT(message, HasSubstr(path));
    EXPECT_THAT(message, HasSubstr(problem));
    EXPECT_THAT(message, HasSubstr("dataset-fashion-mnist"));
    EXPECT_THAT(message, HasSubstr("--data-dir"));
  }

  const DatasetFiles files_;
};

TEST_F(DatasetTest, CopiesTheSamplesAskedFor) {
  const absl::StatusOr<Dataset> dataset = Dataset::Load(files_.directory(), Split::kTrain);
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
  std::filesystem::remove(files_.labels_path());
  ExpectError(absl::StatusCode::kNotFound, files_.labels_path(), "No such file");
}

TEST_F(DatasetTest, SaysThatTheFolderIsMissing) {
  std::filesystem::remove_all(files_.directory());
  ExpectError(absl::StatusCode::kNotFound, files_.images_path(), "No such file");
}

TEST_F(DatasetTest, RefusesAnEmptyFile) {
  std::ofstream(files_.images_path(), std::ios::trunc);
  ExpectError(absl::StatusCode::kDataLoss, files_.images_path(), "ends 4 bytes before");
}

TEST_F(DatasetTest, RefusesAFolderInPlaceOfAFile) {
  std::filesystem::remove(files_.images_path());
  std::filesystem::create_directory(files_.images_path());
  ExpectError(absl::StatusCode::kDataLoss, files_.images_path(), "Is a directory");
}

TEST_F(DatasetTest, RefusesATruncatedCompressedFile) {
  std::filesystem::resize_file(files_.images_path(),
                               std::filesystem::file_size(files_.images_path()) - 12);
  ExpectError(absl::StatusCode::kDataLoss, files_.images_path(), "truncated");
}

TEST_F(DatasetTest, RefusesATruncatedContent) {
  files_.WriteImages(ImagesFile(3).substr(0, 16 + 3 * kImagePixels - 5));
  ExpectError(absl::StatusCode::kDataLoss, files_.images_path(), "ends 5 bytes before");
}

TEST_F(DatasetTest, RefusesBytesAfterTheContent) {
  files_.WriteLabels(LabelsFile({1, 2, 3}) + "x");
  ExpectError(absl::StatusCode::kDataLoss, files_.labels_path(), "bytes after");
}

TEST_F(DatasetTest, RefusesAFlippedBit) {
  std::fstream file(files_.images_path(), std::ios::in | std::ios::out | std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  // The checksum is the first half of the last eight bytes.
  file.seekp(static_cast<std::streamoff>(bytes.size()) - 8);
  file.put(static_cast<char>(bytes[bytes.size() - 8] ^ 1));
  file.close();
  ExpectError(absl::StatusCode::kDataLoss, files_.images_path(),
              "zlib refuses it: incorrect data check");
}

TEST_F(DatasetTest, RefusesAnotherFormat) {
  files_.WriteImages(LabelsFile({1, 2, 3}));
  ExpectError(absl::StatusCode::kDataLoss, files_.images_path(),
              "0x00000801 instead of 0x00000803");
}

TEST_F(DatasetTest, RefusesAnotherShape) {
  files_.WriteImages(BigEndian(0x0803) + BigEndian(1) + BigEndian(28) + BigEndian(32) +
                     std::string(28 * 32, '\0'));
  ExpectError(absl::StatusCode::kDataLoss, files_.images_path(), "dimension 2 of its items is 32");
}

TEST_F(DatasetTest, RefusesAbsurdCountsBeforeAllocating) {
  for (const uint32_t count : {uint32_t{0}, uint32_t{kImagesMax + 1}, ~uint32_t{0}}) {
    files_.WriteImages(BigEndian(0x0803) + BigEndian(count) + BigEndian(28) + BigEndian(28));
    ExpectError(absl::StatusCode::kDataLoss, files_.images_path(),
                absl::StrCat("header says ", count, " items"));
  }
}

TEST_F(DatasetTest, RefusesALabelThatIsNoClass) {
  files_.WriteLabels(LabelsFile({1, 10, 3}));
  ExpectError(absl::StatusCode::kDataLoss, files_.labels_path(), "label 1 is 10");
}

TEST_F(DatasetTest, RefusesDifferentNumbersOfImagesAndLabels) {
  files_.WriteLabels(LabelsFile({1, 2}));
  ExpectError(absl::StatusCode::kDataLoss, files_.labels_path(), "has 2 labels, but");
}

}  // namespace
}  // namespace covey::fashion_mnist
