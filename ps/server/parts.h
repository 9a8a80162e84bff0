// The dense values of one server as the tensors in which they travel.

#ifndef PENSTOCK_PS_SERVER_PARTS_H_
#define PENSTOCK_PS_SERVER_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ps/server/local_model.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// Ranges of fewer bytes are packed. A tensor of its own costs about a
// microsecond on the way, in which so many bytes are copied.
inline constexpr size_t kPackBelowBytes = 16 << 10;

// What is pulled, pushed and trained as one: a range, or several small ones,
// one behind the other, which have the same type, optimizer and policy. All
// rules are by element, so a pack trains as its tables would.
struct Part {
  struct Piece {
    size_t range;  // its place in LocalModel::ranges()
    size_t first;  // its first element in the part
    size_t elements;
  };

  // "kernel", "kernel[300:600]", "pack 0"; no other part or sparse table of
  // the server has it.
  std::string name;
  tensor::DType dtype;
  tensor::Shape shape;  // of a pack: its elements
  size_t policy;
  size_t table;  // one of its tables, for the optimizer
  std::vector<Piece> pieces;
};

size_t ElementsOf(const Part& part);

// Returns the parts of a server. The same model and placement give the same.
std::vector<Part> LayOut(const LocalModel& model);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_PARTS_H_
