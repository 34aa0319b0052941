// SPDX-License-Identifier: Apache-2.0

// What the store costs compared with the disk: one file of 512 MiB in pieces of 1 MiB, synced, by
// write() alone and by messages to a StoreThread. Each iteration writes the file in both ways, the
// other one first each time, because a disk's rate changes with time. Counters say the rates.

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/buffer.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/set_once.h"
#include "common/store/disk_folder.h"
#include "common/store/store_thread.h"

namespace covey {
namespace {

constexpr uint64_t kFileBytes = 512 << 20;
constexpr uint64_t kPieceBytes = 1 << 20;

Buffer Piece() {
  Buffer piece = Buffer::Allocate(kPieceBytes);
  for (size_t i = 0; i < kPieceBytes; ++i) piece.MutableData()[i] = static_cast<uint8_t>(i * 7);
  return piece;
}

void WriteByCalls(const std::string& path, const Buffer& piece) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  COVEY_CHECK(file >= 0);
  for (uint64_t offset = 0; offset < kFileBytes; offset += kPieceBytes) {
    COVEY_CHECK(write(file, piece.data(), kPieceBytes) == ssize_t{kPieceBytes});
  }
  COVEY_CHECK(fsync(file) == 0 && close(file) == 0);
}

void WriteByMessages(const std::string& path, const Buffer& piece) {
  SetOnce<bool> done;
  StoreThread store({.queue_bytes_max = kFileBytes},
                    *DiskFolder::Open(path, DiskFolder::Missing::kIsCreated),
                    [&done](const Message& reply) {
                      COVEY_CHECK(StatusOf(reply).ok());
                      if (reply.envelope.store_reply().id() == 1) done.Set(true);
                    });
  Message message;
  proto::StoreRequest& request = *message.envelope.mutable_store_request();
  request.set_path("part");
  for (uint64_t offset = 0; offset < kFileBytes; offset += kPieceBytes) {
    request.mutable_append()->set_offset(offset);
    message.frames = {piece};
    store.Send(message);
  }
  message.frames.clear();
  request.set_id(1);
  request.mutable_sync();
  store.Send(message);
  done.Wait();
}

void Write(benchmark::State& state) {
  const std::string path = absl::StrCat("/tmp/covey-store-bench-", getpid());
  const Buffer piece = Piece();
  absl::Duration by_calls;
  absl::Duration by_messages;
  bool calls_first = false;
  for (auto _ : state) {
    calls_first = !calls_first;
    for (const bool calls : {calls_first, !calls_first}) {
      const absl::Time begin = MonotonicNow();
      calls ? WriteByCalls(path + ".raw", piece) : WriteByMessages(path, piece);
      (calls ? by_calls : by_messages) += MonotonicNow() - begin;
      unlink((path + ".raw").c_str());
      unlink((path + "/part").c_str());
    }
  }
  rmdir(path.c_str());
  const double bytes = static_cast<double>(state.iterations()) * kFileBytes;
  state.counters["calls_MiB/s"] = bytes / (1 << 20) / absl::ToDoubleSeconds(by_calls);
  state.counters["store_MiB/s"] = bytes / (1 << 20) / absl::ToDoubleSeconds(by_messages);
}
BENCHMARK(Write)->Iterations(10)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace covey

BENCHMARK_MAIN();
