// Returns the memory of past large messages to the system.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_IDLE_BLOCKS_H_
#define PENSTOCK_TRANSPORT_CONNECTION_IDLE_BLOCKS_H_

namespace penstock {
namespace connection {

// Starts to free the blocks that memory::LargeBlocks keeps for the process. A
// block is freed after 5 to 10 seconds without use. Costs nothing while no
// block is kept. Later calls do nothing. Thread-safe.
void FreeIdleBlocks();

}  // namespace connection
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_CONNECTION_IDLE_BLOCKS_H_
