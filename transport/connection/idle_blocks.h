// Returns the memory of past large messages to the system.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_IDLE_BLOCKS_H_
#define PENSTOCK_TRANSPORT_CONNECTION_IDLE_BLOCKS_H_

namespace penstock {
namespace connection {

// From the first call on, blocks that the process's memory::LargeBlocks keeps
// are freed once they have not been used for 5 to 10 seconds. Costs nothing
// while none are kept. Thread-safe.
void FreeIdleBlocks();

}  // namespace connection
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_CONNECTION_IDLE_BLOCKS_H_
