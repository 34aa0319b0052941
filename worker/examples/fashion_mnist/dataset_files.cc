// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/fashion_mnist/dataset_files.h"

#include <zlib.h>

#include <cstdio>
#include <cstdlib>

#include "common/base/check.h"
#include "gtest/gtest.h"
#include "worker/examples/fashion_mnist/dataset.h"

namespace covey::fashion_mnist {
namespace {

void WriteGzip(const std::string& path, const std::string& content) {
  gzFile file = gzopen(path.c_str(), "wb");
  COVEY_CHECK(file != nullptr);
  COVEY_CHECK(gzwrite(file, content.data(), static_cast<unsigned>(content.size())) ==
              static_cast<int>(content.size()));
  COVEY_CHECK(gzclose(file) == Z_OK);
}

}  // namespace

std::string BigEndian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

std::string ImagesFile(uint32_t count) {
  std::string content =
      BigEndian(0x0803) + BigEndian(count) + BigEndian(kImageSide) + BigEndian(kImageSide);
  for (uint32_t i = 0; i < count; ++i) content.append(kImagePixels, static_cast<char>(i));
  return content;
}

std::string LabelsFile(const std::string& labels) {
  return BigEndian(0x0801) + BigEndian(static_cast<uint32_t>(labels.size())) + labels;
}

DatasetFiles::DatasetFiles() : directory_(::testing::TempDir() + "/dataset_XXXXXX") {
  COVEY_CHECK(mkdtemp(directory_.data()) != nullptr);
}

DatasetFiles::~DatasetFiles() {
  // A test may have removed any of them already.
  std::remove(images_path().c_str());
  std::remove(labels_path().c_str());
  std::remove(directory_.c_str());
}

void DatasetFiles::WriteImages(const std::string& content) const {
  WriteGzip(images_path(), content);
}

void DatasetFiles::WriteLabels(const std::string& content) const {
  WriteGzip(labels_path(), content);
}

}  // namespace covey::fashion_mnist
