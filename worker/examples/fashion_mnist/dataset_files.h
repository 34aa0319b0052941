// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace covey::fashion_mnist {

// The content of an images file (before compression) whose image i has the value i in all pixels.
std::string ImagesFile(uint32_t count);
// The content of a labels file with these bytes as its labels.
std::string LabelsFile(const std::string& labels);
// `value` in the byte order of IDX headers.
std::string BigEndian(uint32_t value);

// A new folder for the training split, for tests; removed by the destructor. A failure to write
// ends the test program.
class DatasetFiles {
 public:
  DatasetFiles();
  ~DatasetFiles();
  DatasetFiles(const DatasetFiles&) = delete;
  DatasetFiles& operator=(const DatasetFiles&) = delete;

  const std::string& directory() const { return directory_; }
  std::string images_path() const { return directory_ + "/train-images-idx3-ubyte.gz"; }
  std::string labels_path() const { return directory_ + "/train-labels-idx1-ubyte.gz"; }

  // Compress `content` into the file.
  void WriteImages(const std::string& content) const;
  void WriteLabels(const std::string& content) const;

 private:
  std::string directory_;
};

}  // namespace covey::fashion_mnist
