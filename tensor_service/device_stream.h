// The order of copies relative to the other work of a device.
//
// A device runs the work of each stream in order, and does not report when work
// ends. Code that passes memory on must therefore say when the memory may be
// used. The rules are those of DLPack and of __cuda_array_interface__, version
// 3:
//
// - A producer's work on a tensor is in some stream. Record() on that stream
//   returns an event, which completes once all work that is in the stream at
//   that moment has run. Work that is queued later does not count. A buffer may
//   carry such an event, Buffer::ready(). Once the event has completed, the
//   buffer's bytes may be read, or overwritten in a destination. A buffer
//   without an event may be used immediately.
// - Each copy of DeviceMemory's begins after the events of both buffers, and is
//   complete when the function returns. Thus work that a consumer queues
//   afterwards, in any stream, runs after the copy. Only the caller waits.
// - A consumer that uses the memory in its own stream, without a copy, makes
//   that stream wait by Order(), or waits itself by Await().
// - An event belongs to one stream. No function waits for a whole device, and
//   only streams that the caller names wait for events.
//
// Code that has queued work on a buffer's memory must keep the buffer until the
// work has run: when the last holder drops the buffer, its memory is reused.

#ifndef PENSTOCK_TENSOR_SERVICE_DEVICE_STREAM_H_
#define PENSTOCK_TENSOR_SERVICE_DEVICE_STREAM_H_

#include <cstdint>

#include "tensor_service/device.h"

namespace penstock::tensor {

// A stream of a device, by its number in DLPack and __cuda_array_interface__: a
// CUstream, or one of the two default streams below. 0 is no stream, as in
// those interfaces: CUDA interprets 0 as either default stream, depending on
// how a program was compiled.
struct Stream {
  uintptr_t handle = 0;

  // CUDA's default streams. Legacy() belongs to the context: its work and the
  // work of other streams wait for each other, except in non-blocking streams.
  // PerThread() belongs to the calling thread.
  static constexpr Stream Legacy() { return {1}; }
  static constexpr Stream PerThread() { return {2}; }
};

// A moment in a stream, made by DeviceMemory::Record(). Valid only for the
// DeviceMemory that made it. Does not keep the stream alive, and may outlive
// it. Any thread may use and drop an event.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  // Returns the stream's device.
  virtual Device device() const = 0;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_DEVICE_STREAM_H_
