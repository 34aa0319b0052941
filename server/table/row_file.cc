// SPDX-License-Identifier: Apache-2.0
#include "server/table/row_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"

namespace covey::server {
namespace {

// Of the file that is mapped at once. A process may have 65,530 mappings by default.
constexpr size_t kRegionBytes = size_t{1} << 30;
constexpr size_t kPage = 4096;

}  // namespace

// Owns the descriptor and the length.
class RowFile::File {
 public:
  File(std::string folder, int descriptor) : folder_(std::move(folder)), descriptor_(descriptor) {}
  ~File() { close(descriptor_); }
  File(const File&) = delete;

  int descriptor() const { return descriptor_; }
  const std::string& folder() const { return folder_; }
  absl::Status Failed(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("rows in ", folder_, ": ", what, ": ",
                                                   std::strerror(errno),
                                                   "; choose a folder of a local disk with room"));
  }

  // Makes the file longer. Returns the offset of the new part, which takes no room on the disk yet.
  absl::StatusOr<size_t> Lengthen(size_t bytes) {
    if (ftruncate(descriptor_, static_cast<off_t>(length_ + bytes)) != 0) {
      return Failed("lengthen the file");
    }
    return std::exchange(length_, length_ + bytes);
  }

 private:
  const std::string folder_;
  const int descriptor_;
  size_t length_ = 0;
};

// A mapped part of the file. Its chunks share it.
class RowFile::Region {
 public:
  static absl::StatusOr<std::shared_ptr<Region>> Map(std::shared_ptr<File> file, size_t bytes) {
    COVEY_ASSIGN_OR_RETURN(const size_t offset, file->Lengthen(bytes));
    void* const start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->descriptor(),
                             static_cast<off_t>(offset));
    if (start == MAP_FAILED) return file->Failed("map the file");
    // Rows that are used together lie anywhere, so what lies beside one is not worth reading.
    madvise(start, bytes, MADV_RANDOM);
    return std::make_shared<Region>(std::move(file), static_cast<uint8_t*>(start), offset, bytes);
  }
  Region(std::shared_ptr<File> file, uint8_t* start, size_t offset, size_t bytes)
      : file_(std::move(file)), start_(start), offset_(offset), bytes_(bytes) {}
  ~Region() { munmap(start_, bytes_); }
  Region(const Region&) = delete;

  size_t bytes() const { return bytes_; }
  uint8_t* At(size_t position) const { return start_ + position; }
  // False: the disk has no room for them; errno says why.
  bool TakeRoom(size_t position, size_t bytes) const {
    if (fallocate(file_->descriptor(), 0, static_cast<off_t>(offset_ + position),
                  static_cast<off_t>(bytes)) == 0) {
      return true;
    }
    const int why = errno;
    GiveRoomBack(position, bytes);  // a part of it may have been taken
    errno = why;
    return false;
  }
  void GiveRoomBack(size_t position, size_t bytes) const {
    fallocate(file_->descriptor(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(offset_ + position), static_cast<off_t>(bytes));
  }

 private:
  const std::shared_ptr<File> file_;
  uint8_t* const start_;
  const size_t offset_;
  const size_t bytes_;
};

absl::StatusOr<std::unique_ptr<RowFile>> RowFile::Create(absl::string_view folder) {
  std::string path = absl::StrCat(folder, "/covey-rows-XXXXXX");
  const int descriptor = mkostemp(path.data(), O_CLOEXEC);
  auto file = std::make_shared<File>(std::string(folder), descriptor);
  if (descriptor < 0) return file->Failed("make a file");
  unlink(path.c_str());
  auto rows = absl::WrapUnique(new RowFile(std::move(file)));
  // So that a folder in which this is not possible is refused now.
  COVEY_ASSIGN_OR_RETURN(rows->region_, Region::Map(rows->file_, kRegionBytes));
  if (!rows->region_->TakeRoom(0, kPage)) return rows->file_->Failed("take room");
  rows->region_->GiveRoomBack(0, kPage);
  return rows;
}

RowFile::RowFile(std::shared_ptr<File> file) : file_(std::move(file)) {}

RowFile::~RowFile() = default;

Buffer RowFile::NewChunk(size_t bytes) {
  if (bytes < kPage) return Buffer::Allocate(bytes);
  const size_t rounded = (bytes + kPage - 1) / kPage * kPage;
  if (used_ + rounded > region_->bytes()) {
    absl::StatusOr<std::shared_ptr<Region>> next =
        Region::Map(file_, std::max(rounded, kRegionBytes));
    if (!next.ok()) {
      LogWarning("rows_in_memory", {{"why", next.status().message()}});
      return Buffer::Allocate(bytes);
    }
    region_ = *std::move(next);
    used_ = 0;
  }
  if (!region_->TakeRoom(used_, rounded)) {
    LogWarning("rows_in_memory",
               {{"folder", file_->folder()}, {"why", std::strerror(errno)}, {"bytes", bytes}});
    return Buffer::Allocate(bytes);
  }
  const size_t position = std::exchange(used_, used_ + rounded);
  return Buffer::Borrow(region_->At(position), bytes, [region = region_, position, rounded] {
    region->GiveRoomBack(position, rounded);
  });
}

}  // namespace covey::server
