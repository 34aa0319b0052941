// SPDX-License-Identifier: Apache-2.0
#include "client/cli/snapshot/snapshot_import.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/snapshot/tensor_file.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/format/checkpoint_index.h"
#include "common/runtime/process_main.h"
#include "common/snapshot/import_writer.h"
#include "common/snapshot/manifest.h"
#include "common/table/definition.h"
#include "common/tensor/codec.h"

namespace covey::cli {
namespace {

// The tensors that must be in each file; empty = whatever is there.
using WantedTensors = std::map<std::string, std::set<std::string>>;

bool IsFolder(const std::string& path) {
  struct stat about = {};
  return stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
}

bool Exists(const std::string& path) {
  struct stat about = {};
  return stat(path.c_str(), &about) == 0;
}

absl::Status AddModelFolder(const std::string& folder, WantedTensors& files) {
  const std::string path = absl::StrCat(folder, "/", kCheckpointIndexName);
  if (!Exists(path)) {
    files[absl::StrCat(folder, "/model.safetensors")];
    return absl::OkStatus();
  }
  COVEY_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file, InputFile::Open(path));
  // One byte beyond the limit shows that there are more.
  std::string text(std::min(file->bytes(), CheckpointIndexLimits::kTextBytes + 1), ' ');
  COVEY_RETURN_IF_ERROR(file->Read(0, {reinterpret_cast<uint8_t*>(text.data()), text.size()}));
  const auto index = ReadCheckpointIndex(text);
  if (!index.ok()) return Annotate(path, index.status());
  for (const auto& [tensor, name] : *index) {
    files[absl::StrCat(folder, "/", name)].insert(tensor);
  }
  return absl::OkStatus();
}

absl::StatusOr<WantedTensors> FilesOf(const std::vector<std::string>& paths) {
  WantedTensors files;
  for (const std::string& path : paths) {
    if (IsFolder(path)) {
      COVEY_RETURN_IF_ERROR(AddModelFolder(path, files));
    } else {
      files[path];
    }
  }
  return files;
}

// Imports file after file.
class Import {
 public:
  Import(const std::string& folder, Folder& store)
      : writer_(store, folder, static_cast<uint64_t>(absl::ToUnixMillis(absl::Now()))) {}

  absl::Status AddFile(const std::string& path, const std::set<std::string>& wanted) {
    COVEY_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file, InputFile::Open(path));
    COVEY_ASSIGN_OR_RETURN(const std::vector<StoredTensor> tensors, ReadTensorList(path, *file));
    std::set<std::string> missing = wanted;
    for (const StoredTensor& tensor : tensors) missing.erase(tensor.name);
    if (!missing.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " does not hold tensor '", absl::CHexEscape(*missing.begin()),
                       "', although ", kCheckpointIndexName, " says so"));
    }
    for (const StoredTensor& tensor : tensors) {
      COVEY_RETURN_IF_ERROR(AddTensor(path, *file, tensor));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Imported> Finish() {
    if (imported_.tables == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "there is nothing to import",
          imported_.skipped.empty() ? "" : absl::StrCat(": ", imported_.skipped.front())));
    }
    COVEY_ASSIGN_OR_RETURN(imported_.bytes, writer_.Finish());
    return std::move(imported_);
  }

 private:
  absl::Status AddTensor(const std::string& path, const InputFile& file,
                         const StoredTensor& tensor) {
    const proto::TableSpec spec = ImportedTable(tensor.name, tensor.shape);
    const absl::Status table = TableDefinition::Parse(spec).status();
    if (!tensor.format || !table.ok()) {
      if (imported_.skipped.size() >= kTablesMax) {
        return absl::ResourceExhaustedError(
            absl::StrCat(path, ": no table can hold more than ", kTablesMax, " of its tensors"));
      }
      imported_.skipped.push_back(table.ok() ? absl::StrCat(path, ": '", tensor.name,
                                                            "' has elements of type ", tensor.type,
                                                            "; F32, F16 and BF16 can be imported")
                                             : absl::StrCat(path, ": ", table.message()));
      return absl::OkStatus();
    }
    if (const auto [other, is_new] = files_.emplace(tensor.name, path); !is_new) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", tensor.name, "' is in ", other->second, " and in ", path));
    }
    ++imported_.tables;
    return writer_.Add(spec, [&](uint64_t first, std::span<float> values) {
      return ReadValues(file, tensor, first, values);
    });
  }

  absl::Status ReadValues(const InputFile& file, const StoredTensor& tensor, uint64_t first,
                          std::span<float> values) {
    if (WaitForTermination(absl::ZeroDuration())) {
      return absl::CancelledError("interrupted; nothing was imported");
    }
    if (tensor.format == WireFormat::kFloat32) {
      return file.Read(tensor.begin + first * sizeof(float),
                       {reinterpret_cast<uint8_t*>(values.data()), values.size_bytes()});
    }
    encoded_.resize(EncodedBytes(*tensor.format, values.size()));
    COVEY_RETURN_IF_ERROR(file.Read(tensor.begin + EncodedBytes(*tensor.format, first), encoded_));
    Decode(*tensor.format, encoded_, values);
    return absl::OkStatus();
  }

  ImportWriter writer_;
  Imported imported_;
  // By the names of their tensors.
  std::map<std::string, std::string> files_;
  std::vector<uint8_t> encoded_;
};

absl::StatusOr<Imported> ImportAll(const WantedTensors& files, const std::string& folder,
                                   Folder& store) {
  Import import(folder, store);
  for (const auto& [path, wanted] : files) COVEY_RETURN_IF_ERROR(import.AddFile(path, wanted));
  return import.Finish();
}

absl::Status CheckIsNew(const std::string& folder, Folder& store) {
  COVEY_ASSIGN_OR_RETURN(const std::vector<FolderEntry> entries, store.List(""));
  if (std::none_of(entries.begin(), entries.end(),
                   [&](const FolderEntry& entry) { return entry.name == folder; })) {
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(absl::StrCat(
      "the store has ", folder, "; pass another --name, or covey snapshot delete ", folder));
}

}  // namespace

std::string ImportNameOf(const std::string& path) {
  absl::string_view name = path;
  while (absl::ConsumeSuffix(&name, "/")) {
  }
  name = name.substr(name.rfind('/') + 1);
  if (!absl::ConsumeSuffix(&name, ".safetensors")) absl::ConsumeSuffix(&name, ".npy");
  return std::string(name);
}

absl::StatusOr<Imported> ImportFiles(const std::vector<std::string>& paths,
                                     const std::string& folder, Folder& store) {
  COVEY_RETURN_IF_ERROR(CheckIsNew(folder, store));
  COVEY_ASSIGN_OR_RETURN(const WantedTensors files, FilesOf(paths));
  absl::StatusOr<Imported> imported = ImportAll(files, folder, store);
  // Without its manifest the remainder of a failed import is not complete; the first error counts.
  if (!imported.ok()) store.Remove(folder, kManifestName).IgnoreError();
  return imported;
}

}  // namespace covey::cli
