// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/store/folder.h"

namespace covey::cli {

// What an import has written.
struct Imported {
  uint64_t tables = 0;
  // The size of the snapshot.
  uint64_t bytes = 0;
  // Tensors that no table can hold, each with the reason.
  std::vector<std::string> skipped;
};

// The name of an import that is given none: that of its first file or folder, without the end.
// Pure.
std::string ImportNameOf(const std::string& path);

// Writes the tensors of files to a store as an imported snapshot: a table per tensor, with its name
// and shape; float16 and bfloat16 become float32, which holds them exactly. A path is a file in
// safetensors or NPY format, or a folder as Hugging Face's libraries save a model. Tensors of other
// types, without elements, or with names that no table may have, are skipped.
//
// `folder`: an import's (ImportFolderName). The snapshot is complete at the end, and is not there
// after an error. Blocks. Memory: the head of one file, the manifest, one piece. Ends with
// CANCELLED after SIGINT or SIGTERM.
//
// ALREADY_EXISTS: the store has such a folder; INVALID_ARGUMENT: a file breaks its format, a tensor
// occurs twice, or nothing can be imported; others as InputFile and Folder.
absl::StatusOr<Imported> ImportFiles(const std::vector<std::string>& paths,
                                     const std::string& folder, Folder& store);

}  // namespace covey::cli
