// SPDX-License-Identifier: Apache-2.0
#include "common/net/shm/shm_ring.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

constexpr size_t kRingBytes = 512;
using Payload = std::vector<uint8_t>;

// Both sides of a ring in one process.
struct Ring {
  alignas(8) std::vector<uint8_t> bytes = std::vector<uint8_t>(kRingBytes);
  std::atomic<uint64_t> written{0};
  std::atomic<uint64_t> read{0};
  ShmRingWriter writer{bytes, written, read};
  ShmRingReader reader{bytes, written, read};

  bool Write(const Payload& payload) {
    const auto room = writer.Reserve(payload.size());
    EXPECT_TRUE(room.ok());
    if (room->empty()) return false;
    std::copy(payload.begin(), payload.end(), room->begin());
    writer.Publish();
    return true;
  }
};

Payload PayloadOf(uint8_t number, size_t bytes) {
  Payload payload(bytes);
  for (size_t i = 0; i < bytes; ++i) payload[i] = static_cast<uint8_t>(number + i);
  return payload;
}

// What the reader sees is padded.
bool StartsWith(const Payload& read, const Payload& written) {
  return read.size() < written.size() + 8 && read.size() >= written.size() &&
         std::equal(written.begin(), written.end(), read.begin());
}

TEST(ShmRingTest, CarriesPayloadsInOrderRoundAndRound) {
  Ring ring;
  Random random(1);
  std::deque<Payload> in_ring;
  Payload read;
  uint8_t number = 0;
  size_t refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (random.Chance(0.55)) {
      Payload payload =
          PayloadOf(++number, 1 + random.Below(ShmRingWriter::PayloadMax(kRingBytes)));
      if (ring.Write(payload)) {
        in_ring.push_back(std::move(payload));
      } else {
        ++refused;
        EXPECT_FALSE(in_ring.empty()) << "an empty ring has room for every payload";
      }
    } else {
      EXPECT_EQ(ring.reader.HasInput(), !in_ring.empty());
      const auto next = ring.reader.Next(read);
      ASSERT_TRUE(next.ok()) << next.status();
      ASSERT_EQ(*next, !in_ring.empty());
      if (!*next) continue;
      ASSERT_TRUE(StartsWith(read, in_ring.front()));
      in_ring.pop_front();
    }
  }
  EXPECT_GT(refused, 100u);
}

TEST(ShmRingTest, WhatIsReservedIsNotSeenBeforeItIsPublished) {
  Ring ring;
  ASSERT_TRUE(ring.writer.Reserve(8).ok());
  EXPECT_FALSE(ring.reader.HasInput());
  Payload read;
  EXPECT_FALSE(*ring.reader.Next(read));
}

TEST(ShmRingTest, TwoThreadsAgree) {
  Ring ring;
  constexpr uint32_t kPayloads = 100'000;
  std::thread writer([&ring] {
    for (uint32_t i = 0; i < kPayloads; ++i) {
      Payload payload = PayloadOf(static_cast<uint8_t>(i), 1 + i % 60);
      while (!ring.Write(payload)) std::this_thread::yield();
    }
  });
  Payload read;
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < kPayloads; ++i) {
    while (!*ring.reader.Next(read)) std::this_thread::yield();
    if (!StartsWith(read, PayloadOf(static_cast<uint8_t>(i), 1 + i % 60))) ++wrong;
  }
  writer.join();
  EXPECT_EQ(wrong, 0u);
}

// The writer is another process, and may write anything anywhere at any time.
TEST(ShmRingTest, NoBytesOfTheWriterLeadOutsideTheRing) {
  Random random(2);
  uint64_t refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    Ring ring;
    for (int i = 0; i < 3; ++i) ring.Write(PayloadOf(1, 1 + random.Below(100)));
    const uint64_t words[] = {random.Next(), random.Below(kRingBytes), 0, 8, kRingBytes, ~0ull};
    if (random.Chance(0.5)) {
      ring.written = ring.written + words[random.Below(std::size(words))];
    } else {
      const auto word = static_cast<uint32_t>(words[random.Below(std::size(words))]);
      std::memcpy(&ring.bytes[random.Below(kRingBytes / 4) * 4], &word, sizeof(word));
    }
    Payload read;
    for (int i = 0; i < 8; ++i) {
      const auto next = ring.reader.Next(read);
      if (!next.ok()) {
        EXPECT_EQ(next.status().code(), absl::StatusCode::kDataLoss);
        ++refused;
        break;
      }
      EXPECT_LE(read.size(), kRingBytes);
    }
  }
  EXPECT_GT(refused, 5'000u);
}

TEST(ShmRingTest, NoPositionOfTheReaderLetsTheWriterOverwriteWhatIsUnread) {
  Ring ring;
  ASSERT_TRUE(ring.Write(PayloadOf(1, 100)));
  for (const uint64_t read : {uint64_t{8'000}, uint64_t{1} << 63}) {
    ring.read = read;
    EXPECT_EQ(ring.writer.Reserve(8).status().code(), absl::StatusCode::kDataLoss) << read;
  }
}

}  // namespace
}  // namespace covey
