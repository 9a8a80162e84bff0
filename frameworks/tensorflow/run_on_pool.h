// Moves long work off the polling thread.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_RUN_ON_POOL_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_RUN_ON_POOL_H_

#include <cstddef>
#include <functional>

namespace penstock {
namespace tensorflow {

// Runs `work`, which takes as long as copying `bytes` bytes. Runs short work
// immediately on this thread, and long work on a thread of TensorFlow's pool.
void RunHereOrOnPool(size_t bytes, std::function<void()> work);

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_RUN_ON_POOL_H_
