// The calls of CUDA's driver that this folder makes. All calls go through this
// class, so that a test can replace the device and make each call fail.

#ifndef PENSTOCK_TRANSPORT_DEVICE_API_H_
#define PENSTOCK_TRANSPORT_DEVICE_API_H_

#include <cstddef>
#include <cstdint>

#include "transport/device/abi.h"

namespace penstock {
namespace device {

// The functions of the driver. Each function is the driver's function of the
// same name with the prefix "cu", in its newest version. Functions that need a
// context use the current one of the calling thread; see Device::Enter().
// Thread-safe, as the driver is.
class Api {
 public:
  virtual ~Api() = default;

  virtual abi::Result DriverGetVersion(int* version) = 0;
  // Returns the name of a result in static text, or null if the driver does not
  // know the result.
  virtual const char* GetErrorName(abi::Result result) = 0;

  virtual abi::Result DeviceGetCount(int* count) = 0;
  virtual abi::Result DeviceGet(abi::DeviceId* device, int ordinal) = 0;
  virtual abi::Result DeviceGetName(char* name, int length,
                                    abi::DeviceId device) = 0;
  virtual abi::Result DeviceGetUuid(abi::Uuid* uuid, abi::DeviceId device) = 0;
  virtual abi::Result DeviceGetAttribute(int* value, int attribute,
                                         abi::DeviceId device) = 0;

  virtual abi::Result DevicePrimaryCtxRetain(abi::Context* context,
                                             abi::DeviceId device) = 0;
  virtual abi::Result DevicePrimaryCtxRelease(abi::DeviceId device) = 0;
  virtual abi::Result CtxPushCurrent(abi::Context context) = 0;
  virtual abi::Result CtxPopCurrent(abi::Context* context) = 0;

  virtual abi::Result StreamCreate(abi::Stream* stream, unsigned flags) = 0;
  virtual abi::Result StreamDestroy(abi::Stream stream) = 0;
  virtual abi::Result StreamSynchronize(abi::Stream stream) = 0;
  virtual abi::Result StreamWaitEvent(abi::Stream stream, abi::Event event,
                                      unsigned flags) = 0;
  // Sets `status` to kCaptureStatusNone if the stream is not being captured, or
  // else to another value. Does not disturb a capture.
  virtual abi::Result StreamIsCapturing(abi::Stream stream, int* status) = 0;
  // Swaps the calling thread's mode with `mode`; see RelaxedCapture.
  virtual abi::Result ThreadExchangeStreamCaptureMode(int* mode) = 0;
  virtual abi::Result EventCreate(abi::Event* event, unsigned flags) = 0;
  virtual abi::Result EventDestroy(abi::Event event) = 0;
  virtual abi::Result EventRecord(abi::Event event, abi::Stream stream) = 0;
  // Returns kNotReady, which is no error, until the event has completed.
  virtual abi::Result EventQuery(abi::Event event) = 0;
  virtual abi::Result EventSynchronize(abi::Event event) = 0;

  virtual abi::Result MemAlloc(abi::Address* address, size_t bytes) = 0;
  virtual abi::Result MemFree(abi::Address address) = 0;
  virtual abi::Result MemHostAlloc(void** memory, size_t bytes,
                                   unsigned flags) = 0;
  virtual abi::Result MemFreeHost(void* memory) = 0;
  virtual abi::Result MemHostRegister(void* memory, size_t bytes,
                                      unsigned flags) = 0;
  virtual abi::Result MemHostUnregister(void* memory) = 0;

  virtual abi::Result PointerGetAttribute(void* value, int attribute,
                                          abi::Address address) = 0;

  // Finds the allocation that contains `within`. Sets `address` to its begin
  // and `bytes` to its length.
  virtual abi::Result MemGetAddressRange(abi::Address* address, size_t* bytes,
                                         abi::Address within) = 0;
  virtual abi::Result IpcGetMemHandle(abi::IpcMemHandle* handle,
                                      abi::Address address) = 0;
  virtual abi::Result IpcOpenMemHandle(abi::Address* address,
                                       const abi::IpcMemHandle& handle,
                                       unsigned flags) = 0;
  virtual abi::Result IpcCloseMemHandle(abi::Address address) = 0;
  // Writes a handle for the range to `*handle`, an int for
  // kRangeHandleDmaBufFd. Returns kNotSupported with a driver older than CUDA
  // 11.7, which lacks this function.
  virtual abi::Result MemGetHandleForAddressRange(void* handle,
                                                  abi::Address address,
                                                  size_t bytes, int type,
                                                  uint64_t flags) = 0;

  // Makes writes of network devices to the memory of the current context
  // visible. Returns kNotSupported with a driver older than CUDA 11.3, which
  // lacks this function.
  virtual abi::Result FlushGPUDirectRDMAWrites(int target, int scope) = 0;

  virtual abi::Result DeviceCanAccessPeer(int* can, abi::DeviceId device,
                                          abi::DeviceId peer) = 0;
  virtual abi::Result CtxEnablePeerAccess(abi::Context peer,
                                          unsigned flags) = 0;

  virtual abi::Result MemcpyHtoDAsync(abi::Address to, const void* from,
                                      size_t bytes, abi::Stream stream) = 0;
  virtual abi::Result MemcpyDtoHAsync(void* to, abi::Address from, size_t bytes,
                                      abi::Stream stream) = 0;
  virtual abi::Result MemcpyDtoDAsync(abi::Address to, abi::Address from,
                                      size_t bytes, abi::Stream stream) = 0;
  virtual abi::Result MemcpyPeerAsync(abi::Address to, abi::Context to_context,
                                      abi::Address from,
                                      abi::Context from_context, size_t bytes,
                                      abi::Stream stream) = 0;

  virtual abi::Result ModuleLoadData(abi::Module* module,
                                     const void* image) = 0;
  virtual abi::Result ModuleUnload(abi::Module module) = 0;
  virtual abi::Result ModuleGetFunction(abi::Function* function,
                                        abi::Module module,
                                        const char* name) = 0;
  // Starts `blocks` blocks of `threads` threads each, both in one dimension.
  virtual abi::Result LaunchKernel(abi::Function function, unsigned blocks,
                                   unsigned threads, abi::Stream stream,
                                   void** parameters) = 0;
};

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_API_H_
