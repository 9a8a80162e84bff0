// Memory of devices that this process has allocated to send from.

#ifndef PENSTOCK_TRANSPORT_DEVICE_OWNED_BLOCKS_H_
#define PENSTOCK_TRANSPORT_DEVICE_OWNED_BLOCKS_H_

#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "transport/base/mutex.h"
#include "transport/device/handles.h"

namespace penstock {
namespace device {

// The blocks of device memory that this process owns. CUDA leaves it undefined
// to free a block that a peer has open. Code that shares a block with a peer
// therefore holds Found::memory until the peer has closed the block. A block is
// freed when nobody holds Found::memory and nobody in this process uses the
// block.
//
// Must outlive all results. Thread-safe.
class OwnedBlocks {
 public:
  OwnedBlocks() = default;
  OwnedBlocks(const OwnedBlocks&) = delete;
  OwnedBlocks& operator=(const OwnedBlocks&) = delete;

  // Takes ownership of the block. Returns a reference that users in this
  // process hold.
  std::shared_ptr<const void> Add(DeviceBlock block);

  struct Found {
    // Holds the block; the last reference frees it. Null if there is no block.
    std::shared_ptr<const void> memory;
    // Expires once nobody in this process uses the block.
    std::weak_ptr<const void> use;
  };
  // Returns the block that begins at `address`, while it is in use.
  Found At(abi::Address address) const;

 private:
  class Use;

  mutable base::Mutex mu_;
  std::map<abi::Address, std::weak_ptr<const Use>> used_ ABSL_GUARDED_BY(mu_);
};

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_OWNED_BLOCKS_H_
