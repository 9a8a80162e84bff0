// A message from one rank to another.

#ifndef PENSTOCK_COLLECTIVES_LETTER_H_
#define PENSTOCK_COLLECTIVES_LETTER_H_

#include <cstdint>
#include <string>

#include "collectives/call.h"
#include "tensor_service/dtype.h"

namespace penstock::collectives {

struct Letter {
  tensor::DType dtype = tensor::DType::kUint8;
  int64_t count = 0;
  int peer = 0;  // the other rank
  uint32_t tag = 0;
};

// Returns the letter's type and count in the form in which ranks exchange them.
CallWords Encode(const Letter& letter);

// Returns for example "rank 1 sends 4 f32 with tag 7, rank 0 receives 8 f32".
// Accepts any words of the sender, because a peer wrote them.
std::string DescribeMismatch(const CallWords& sent, const Letter& wanted,
                             int receiver);

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_LETTER_H_
