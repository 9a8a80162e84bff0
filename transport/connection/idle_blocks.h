// Returns the memory of past large messages to the system.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_IDLE_BLOCKS_H_
#define PENSTOCK_TRANSPORT_CONNECTION_IDLE_BLOCKS_H_

namespace penstock {
namespace connection {

// Frees the blocks that the process's memory::LargeBlocks keeps, once they have
// not been used for 5 to 10 seconds, from the first call on. Costs nothing
// while no blocks are kept. Thread-safe.
void FreeIdleBlocks();

}  // namespace connection
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_CONNECTION_IDLE_BLOCKS_H_
