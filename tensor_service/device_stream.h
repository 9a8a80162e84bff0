// The order of copies among the rest of what a device is asked to do.
//
// A device works on its streams, each in order, and tells nobody. So whoever
// hands over memory has to say when it may be touched. The rules here are those
// of DLPack and of __cuda_array_interface__, version 3:
//
//  - A producer's work on a tensor is in some stream. Record() there gives an
//    event: it comes once all has run that is in the stream at that moment.
//    Work that is queued later does not count. A buffer may carry such an
//    event, Buffer::ready(): its bytes may be read, or, if it is a destination,
//    overwritten, once the event has come. A buffer without one may be touched
//    at once.
//  - Each copy of DeviceMemory's begins after the events of both its buffers,
//    and has run when the function returns. So what a consumer then queues, in
//    any stream, comes after it. The caller alone waits.
//  - A consumer that does not copy, but uses the memory in a stream of his, has
//    that stream wait: Order(). Or he waits himself: Await().
//  - Events order single streams. Nothing here ever waits for all of a device,
//    or has streams wait that were not named.
//
// Who has queued work on a buffer's memory keeps the buffer until that has run:
// when the last holder lets go, the memory is another's.

#ifndef PENSTOCK_TENSOR_SERVICE_DEVICE_STREAM_H_
#define PENSTOCK_TENSOR_SERVICE_DEVICE_STREAM_H_

#include <cstdint>

#include "tensor_service/device.h"

namespace penstock::tensor {

// A stream of a device's, by its number in DLPack and
// __cuda_array_interface__: a CUstream, or one of the two below. 0 is none, as
// there: CUDA takes it for one or the other, by how a program was compiled.
struct Stream {
  uintptr_t handle = 0;

  // CUDA's default streams: the one of the context, with which all other
  // streams wait that were not made otherwise; and that of the calling thread.
  static constexpr Stream Legacy() { return {1}; }
  static constexpr Stream PerThread() { return {2}; }
};

// A moment in a stream, see above. Made by DeviceMemory::Record(), and good for
// the DeviceMemory that has made it. Does not keep the stream, which may go
// before it. Any thread may use and drop it.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  // Of the stream.
  virtual Device device() const = 0;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_DEVICE_STREAM_H_
