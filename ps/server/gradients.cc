#include "ps/server/gradients.h"

#include <algorithm>

namespace penstock::ps {

size_t Gradients::held_bytes() const {
  // Counts the received message once, because all gradients of a push arrive in
  // one message. A tensor that refers to the message is read-only, and a copy
  // is writable.
  size_t message = 0;
  size_t elements = 0;
  size_t made = 0;
  for (const DenseGradient& each : dense) {
    message = std::max(message, each.gradient.held_bytes());
    elements += each.gradient.byte_size();
  }
  for (const RowGradients& each : rows) {
    made += each.ids.size() * sizeof(uint64_t);
    if (each.values.byte_size() == 0) continue;
    if (each.values.buffer()->writable()) {
      made += each.values.byte_size();
    } else {
      message = std::max(message, each.values.held_bytes());
      elements += each.values.byte_size();
    }
  }
  return std::max(message, elements) + made;
}

}  // namespace penstock::ps
