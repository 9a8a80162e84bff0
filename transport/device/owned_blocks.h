// The memory of devices that this process has allocated to send from.

#ifndef PENSTOCK_TRANSPORT_DEVICE_OWNED_BLOCKS_H_
#define PENSTOCK_TRANSPORT_DEVICE_OWNED_BLOCKS_H_

#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "transport/base/mutex.h"
#include "transport/device/handles.h"

namespace penstock {
namespace device {

// Delays freeing a block for as long as a peer has it open: CUDA does not say
// what becomes of it otherwise. Each who shares a block with a peer holds
// Found::memory until the peer has closed it. The block is freed when nobody
// holds that, and nobody in this process uses the block.
//
// Outlives all that it has handed out. Thread-safe.
class OwnedBlocks {
 public:
  OwnedBlocks() = default;
  OwnedBlocks(const OwnedBlocks&) = delete;
  OwnedBlocks& operator=(const OwnedBlocks&) = delete;

  // Takes the block over. Returns the share of those who use it in this
  // process.
  std::shared_ptr<const void> Add(DeviceBlock block);

  struct Found {
    // Keeps it from being freed, which the last share does. Null if there is
    // none.
    std::shared_ptr<const void> memory;
    // Expires when nobody in this process uses it any more.
    std::weak_ptr<const void> use;
  };
  // Returns the block that begins at `address`, as long as it is used.
  Found At(abi::Address address) const;

 private:
  class Use;

  mutable base::Mutex mu_;
  std::map<abi::Address, std::weak_ptr<const Use>> used_ ABSL_GUARDED_BY(mu_);
};

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_OWNED_BLOCKS_H_
