// Divides passes over a gradient among threads.

#ifndef PENSTOCK_PS_COMPRESSION_PIECES_H_
#define PENSTOCK_PS_COMPRESSION_PIECES_H_

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/functional/function_ref.h"
#include "ps/optim/elements.h"
#include "ps/optim/workers.h"

namespace penstock::ps::compression {

// The number of elements in one task. Large enough to make the task's overhead
// negligible.
inline constexpr size_t kPart = 32 * optim::kPiece;

// Calls pass(begin, count) for elements 0 to total - 1, on all threads, in
// pieces of at most optim::kPiece. All pieces except the last are full.
inline void ForEachPiece(size_t total, const optim::Workers& workers,
                         absl::FunctionRef<void(size_t, size_t)> pass) {
  workers.ForEach((total + kPart - 1) / kPart, [&](size_t part) {
    const size_t end = std::min(total, (part + 1) * kPart);
    for (size_t i = part * kPart; i < end; i += optim::kPiece) {
      pass(i, std::min(optim::kPiece, end - i));
    }
  });
}

// Returns an element of a received tensor, which may be unaligned.
template <typename T>
T ElementAt(const char* data, size_t index) {
  T element;
  std::memcpy(&element, data + index * sizeof(T), sizeof(T));
  return element;
}

}  // namespace penstock::ps::compression

#endif  // PENSTOCK_PS_COMPRESSION_PIECES_H_
