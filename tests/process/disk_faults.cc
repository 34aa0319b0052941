// SPDX-License-Identifier: Apache-2.0
// Faults of a disk, for a program that loads this with LD_PRELOAD. They strike files whose path
// contains COVEY_DISK_OF. The file that COVEY_DISK_FAULT names holds the name of the present fault:
//
//   slow       a sync takes a second more
//   full       a write takes half of the bytes, and the next one finds no space
//   read-only  a write is refused
//
// Without that file there is no fault.

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

// The function of the C library that this one stands in for.
template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool IsStruck(int file) {
  const char* const of = std::getenv("COVEY_DISK_OF");
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t size = of == nullptr ? -1 : readlink(link.c_str(), path, sizeof(path) - 1);
  if (size < 0) return false;
  path[size] = '\0';
  return std::strstr(path, of) != nullptr;
}

bool FaultIs(const char* name) {
  const char* const path = std::getenv("COVEY_DISK_FAULT");
  const int file = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[32] = {};
  const ssize_t size = read(file, text, sizeof(text) - 1);
  close(file);
  return size > 0 && std::strcmp(text, name) == 0;
}

void SyncSlowly(int file) {
  constexpr int kMilliseconds = 1000;
  if (IsStruck(file) && FaultIs("slow")) poll(nullptr, 0, kMilliseconds);
}

ssize_t Refuse(int error) {
  errno = error;
  return -1;
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* bytes, size_t size) {
  static auto* const real = Real<ssize_t(int, const void*, size_t)>("write");
  static size_t left = 0;  // of what a full disk did not take
  if (!IsStruck(file)) return real(file, bytes, size);
  if (FaultIs("read-only")) return Refuse(EROFS);
  if (!FaultIs("full")) return real(file, bytes, size);
  if (size == left || size < 2) return Refuse(ENOSPC);
  left = size - size / 2;
  return real(file, bytes, size / 2);
}

int fdatasync(int file) {
  static auto* const real = Real<int(int)>("fdatasync");
  SyncSlowly(file);
  return real(file);
}

int fsync(int file) {
  static auto* const real = Real<int(int)>("fsync");
  SyncSlowly(file);
  return real(file);
}

}  // extern "C"
