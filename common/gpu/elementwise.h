// SPDX-License-Identifier: Apache-2.0
#pragma once

// For .cu files only: calls a function for each element of some arrays.
//
// A thread does four neighboring elements, which it loads and stores by one instruction per array,
// where all arrays begin at a multiple of four elements; elsewhere it does one. Each thread loads
// all its elements before it stores any, so arrays may be the same memory. The bits depend on
// neither.

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace covey::gpu {

// An array of the GPU's memory, as the function uses it.
template <typename T>
struct Read {
  using Element = T;
  const T* data;
};
template <typename T>
struct Write {
  using Element = T;
  T* data;
};
template <typename T>
struct Modify {
  using Element = T;
  T* data;
};

inline constexpr size_t kLanes = 4;
inline constexpr unsigned kThreadsPerBlock = 256;

// Neighboring elements that one thread loads and stores together.
template <size_t kCount, typename T>
struct alignas(kCount == 1 ? alignof(T) : kCount * sizeof(T)) Pack {
  T lane[kCount];
};

// The elements of one array that a thread works on.
template <size_t kCount, typename T>
struct Elements {
  Pack<kCount, T>* at;
  Pack<kCount, T> pack;
  bool is_stored;
};

template <size_t kCount, typename T>
__device__ Elements<kCount, T> Load(Read<T> array, size_t first) {
  const auto* at = reinterpret_cast<const Pack<kCount, T>*>(array.data + first);
  return {nullptr, *at, false};
}
template <size_t kCount, typename T>
__device__ Elements<kCount, T> Load(Write<T> array, size_t first) {
  return {reinterpret_cast<Pack<kCount, T>*>(array.data + first), {}, true};
}
template <size_t kCount, typename T>
__device__ Elements<kCount, T> Load(Modify<T> array, size_t first) {
  auto* at = reinterpret_cast<Pack<kCount, T>*>(array.data + first);
  return {at, *at, true};
}

template <size_t kCount, typename Function, typename... Loaded>
__device__ void CallAndStore(const Function& function, Loaded... loaded) {
#pragma unroll
  for (size_t lane = 0; lane < kCount; ++lane) function(loaded.pack.lane[lane]...);
  ((loaded.is_stored ? (void)(*loaded.at = loaded.pack) : (void)0), ...);
}

// The first threads do `packs` packs, the others the elements that remain.
template <typename Function, typename... Arrays>
__global__ void RunForEach(size_t packs, size_t count, Function function, Arrays... arrays) {
  const size_t thread = size_t{blockIdx.x} * kThreadsPerBlock + threadIdx.x;
  if (thread < packs) {
    CallAndStore<kLanes>(function, Load<kLanes>(arrays, thread * kLanes)...);
    return;
  }
  const size_t element = packs * kLanes + (thread - packs);
  if (element < count) CallAndStore<1>(function, Load<1>(arrays, element)...);
}

template <typename Array>
bool IsPackAligned(const Array& array) {
  return reinterpret_cast<uintptr_t>(array.data) % alignof(Pack<kLanes, typename Array::Element>) ==
         0;
}

// Asks the GPU to call function(element of each array...) for the first `count` elements.
template <typename Function, typename... Arrays>
void ForEach(size_t count, const Function& function, Arrays... arrays) {
  if (count == 0) return;  // CUDA treats an empty grid as an error
  const size_t packs = (IsPackAligned(arrays) && ...) ? count / kLanes : 0;
  const size_t threads = packs + (count - packs * kLanes);
  const size_t blocks = (threads + kThreadsPerBlock - 1) / kThreadsPerBlock;
  RunForEach<<<static_cast<unsigned>(blocks), kThreadsPerBlock, 0, cudaStreamPerThread>>>(
      packs, count, function, arrays...);
}

}  // namespace covey::gpu
