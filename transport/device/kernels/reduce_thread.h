// The work of one thread of a kernel. Also plain C++, so that tests can run all
// threads of a launch on a machine without a device.

#ifndef PENSTOCK_TRANSPORT_DEVICE_KERNELS_REDUCE_THREAD_H_
#define PENSTOCK_TRANSPORT_DEVICE_KERNELS_REDUCE_THREAD_H_

#include <cstdint>
#include <cstring>

#include "transport/device/kernels/arguments.h"
#include "transport/device/kernels/element.h"
#include "transport/device/kernels/operation.h"

// Prevents unrolling of loops. Enough threads are in flight to hide waits, and
// unrolled loops would double the size of the kernels.
#ifdef __CUDACC__
#define PENSTOCK_NOT_UNROLLED _Pragma("unroll 1")
#else
#define PENSTOCK_NOT_UNROLLED
#endif

namespace penstock::device::kernels {

// A group of elements that one instruction loads or stores.
template <typename Element, int kLanes>
struct alignas(sizeof(Element) * kLanes) Pack {
  Element lanes[kLanes];
};

template <typename Element, int kLanes>
PENSTOCK_HOST_DEVICE Pack<Element, kLanes> Load(const void* array,
                                                uint64_t first) {
  return *reinterpret_cast<const Pack<Element, kLanes>*>(
      static_cast<const Element*>(array) + first);
}

template <typename Element, int kLanes>
PENSTOCK_HOST_DEVICE void Store(const float* values, void* array,
                                uint64_t first) {
  Pack<Element, kLanes> pack;
  for (int i = 0; i < kLanes; ++i) {
    pack.lanes[i] = FromFloat<Element>(values[i]);
  }
  auto* to = reinterpret_cast<Pack<Element, kLanes>*>(
      static_cast<Element*>(array) + first);
#ifdef __CUDA_ARCH__
  // Copies with one instruction. nvcc may compile an assignment to four stores.
  if constexpr (sizeof(pack) == kVectorBytes) {
    uint32_t words[4];
    memcpy(words, &pack, sizeof(words));
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(
                     __cvta_generic_to_global(to)),
                 "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
                 : "memory");
    return;
  }
#endif
  *to = pack;
}

// Computes kLanes elements from `first` on. The output may be one of the
// inputs, because all values are read before the first is written.
template <Operation kOperation, typename Element, int kLanes>
PENSTOCK_HOST_DEVICE void ReducePack(const Arguments& arguments,
                                     uint64_t first) {
  float values[kLanes];
  const auto input = Load<Element, kLanes>(arguments.inputs[0], first);
  for (int i = 0; i < kLanes; ++i) values[i] = ToFloat(input.lanes[i]);
  if (kOperation == Operation::kScaledAdd) {
    const auto old = Load<Element, kLanes>(arguments.output, first);
    for (int i = 0; i < kLanes; ++i) {
      values[i] =
          Add(ToFloat(old.lanes[i]), Multiply(arguments.scale, values[i]));
    }
  } else {
    PENSTOCK_NOT_UNROLLED
    for (uint32_t next = 1; next < arguments.fan_in; ++next) {
      const auto more = Load<Element, kLanes>(arguments.inputs[next], first);
      for (int i = 0; i < kLanes; ++i) {
        values[i] = Add(values[i], ToFloat(more.lanes[i]));
      }
    }
  }
  if (kOperation == Operation::kMean) {
    for (int i = 0; i < kLanes; ++i) {
      values[i] = Multiply(values[i], arguments.scale);
    }
  }
  Store<Element, kLanes>(values, arguments.output, first);
}

// Computes the part of thread number `thread` of `threads`: every `threads`-th
// vector, and every `threads`-th element before and after the vectors.
template <Operation kOperation, typename Element>
PENSTOCK_HOST_DEVICE void ReduceThread(const Arguments& arguments,
                                       uint64_t thread, uint64_t threads) {
  constexpr int kLanes = kVectorBytes / sizeof(Element);
  PENSTOCK_NOT_UNROLLED
  for (uint64_t vector = thread; vector < arguments.vectors;
       vector += threads) {
    ReducePack<kOperation, Element, kLanes>(arguments,
                                            arguments.head + vector * kLanes);
  }
  const uint64_t in_vectors = arguments.vectors * kLanes;
  PENSTOCK_NOT_UNROLLED
  for (uint64_t single = thread; single < arguments.count - in_vectors;
       single += threads) {
    ReducePack<kOperation, Element, 1>(
        arguments, single < arguments.head ? single : single + in_vectors);
  }
}

}  // namespace penstock::device::kernels

#endif  // PENSTOCK_TRANSPORT_DEVICE_KERNELS_REDUCE_THREAD_H_
