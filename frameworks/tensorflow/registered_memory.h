// Declares TensorFlow's CPU memory stable, so that RDMA devices read it without
// a copy.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_REGISTERED_MEMORY_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_REGISTERED_MEMORY_H_

#include <cstdint>

namespace penstock {
namespace tensorflow {

// Makes TensorFlow allocate its CPU memory in regions (by its BFC allocator),
// and declares each region stable while TensorFlow has it
// (transport/memory/stable_memory.h). Permanent, for the whole process.
// TensorFlow aborts if it has already allocated memory.
void RegisterTensorMemory();

// Returns the size of all declared regions.
uint64_t RegisteredBytes();

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_REGISTERED_MEMORY_H_
