// TensorFlow's CPU memory, declared to stay where it is, so that RDMA devices
// read it without a copy.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_REGISTERED_MEMORY_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_REGISTERED_MEMORY_H_

#include <cstdint>

namespace penstock {
namespace tensorflow {

// Makes TensorFlow take its CPU memory in regions (its BFC allocator) and
// declares each of them stable (transport/memory/stable_memory.h) while
// TensorFlow has it. Does so for the whole process, for good. TensorFlow aborts
// if it has taken memory before.
void RegisterTensorMemory();

// Returns how many bytes are declared.
uint64_t RegisteredBytes();

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_REGISTERED_MEMORY_H_
