// The tensors in which the dense values of one server are sent.

#ifndef PENSTOCK_PS_SERVER_PARTS_H_
#define PENSTOCK_PS_SERVER_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ps/server/local_model.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// The size in bytes below which ranges are packed. A separate tensor costs
// about a microsecond per transfer, about as much as copying this many bytes.
inline constexpr size_t kPackBelowBytes = 16 << 10;

// A unit of pulls, pushes and training: one range, or a pack. A pack is several
// small ranges, concatenated, with the same type, optimizer and policy.
// Optimizers work by element, so a pack trains as its tables would.
struct Part {
  struct Piece {
    size_t range;  // index in LocalModel::ranges()
    size_t first;  // offset in the part, in elements
    size_t elements;
  };

  // A name such as "kernel", "kernel[300:600]" or "pack 0". Unique among the
  // parts and sparse tables of the server.
  std::string name;
  tensor::DType dtype;
  tensor::Shape shape;  // a pack: {number of elements}
  size_t policy;
  size_t table;  // one of the part's tables, for the optimizer
  std::vector<Piece> pieces;
};

size_t ElementsOf(const Part& part);

// Returns the parts of a server. The same model and placement always give the
// same parts.
std::vector<Part> LayOut(const LocalModel& model);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_PARTS_H_
