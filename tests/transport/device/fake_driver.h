// A simulated CUDA driver for tests, with copies that run late and calls that
// fail on demand.

#ifndef PENSTOCK_TESTS_TRANSPORT_DEVICE_FAKE_DRIVER_H_
#define PENSTOCK_TESTS_TRANSPORT_DEVICE_FAKE_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "transport/device/api.h"

namespace penstock {
namespace device {

// Implements the documented behaviour of the driver functions that this project
// uses:
//
//   addresses   of device memory crash the CPU
//   streams     run only when somebody waits for them, and no further; memory
//               that is reused too early then has the wrong bytes
//   pageable    host memory is copied immediately, after queued work; only
//               pinned memory is copied late
//   contexts    are current on a thread, and calls without one fail
//   IPC         connects two objects of this class, which represent two
//               processes. A handle names memory of the other process, and is
//               invalid once the memory is freed or the other process has ended
//   captures    of a program's stream reject calls that may invalidate them, on
//               each thread that has not relaxed its mode
//
// Records forbidden calls as violations. Thread-safe.
class FakeDriver : public Api {
 public:
  explicit FakeDriver(int devices = 2, uint64_t bytes_of_each = 256 << 20);
  ~FakeDriver() override;

  // Makes one call fail, after `after` other calls. Excludes calls that destroy
  // objects, whose results the product ignores.
  void FailAfter(int after, abi::Result result);
  // Cancels FailAfter() if no call has failed yet.
  void FailNoMore();
  // Makes every later call fail, as after an error in a kernel.
  void Lose(abi::Result result);
  // Sets an attribute of all devices, for example to 0 for a missing feature.
  void SetAttribute(int attribute, int value);
  // Selects the machine's devices for cuda:0, cuda:1 ..., like
  // CUDA_VISIBLE_DEVICES. The default is 0, 1, 2 ... Call it before other
  // functions.
  void SetVisible(const std::vector<int>& hardware);
  // Sets whether memory is of a kind that IPC cannot share.
  void RefuseIpc(bool refuse);
  // Makes each device unable to access other devices' memory.
  void RefusePeers();
  // Returns true if `device` was enabled to access the memory of `peer`.
  bool Reaches(int device, int peer) const;
  // Returns the number of open allocations of other drivers.
  size_t OpenCount() const;
  // Sets whether host memory can no longer be pinned.
  void RefusePinning(bool refuse);
  // Returns the number of calls so far, without calls that destroy objects.
  int calls() const;
  // Returns the number of calls of a function.
  int CallsOf(const std::string& name) const;
  // Returns the streams, events, memory and contexts that still exist, as text.
  // Returns "" if there are none.
  std::string Remains() const;
  std::vector<std::string> violations() const;

  // Make a stream of the program, which Remains() ignores, and queue work in a
  // stream. The work fills memory with a byte.
  abi::Stream ProgramStream(int device);
  void QueueFill(abi::Stream stream, abi::Address at, char value, size_t bytes);
  // Begin and end a capture of the program's stream, in global mode
  // (cudaStreamCaptureModeGlobal).
  void BeginCapture(abi::Stream stream);
  void EndCapture(abi::Stream stream);
  // Read and write device memory immediately.
  std::string Read(abi::Address at, size_t bytes) const;
  void Write(abi::Address at, const std::string& bytes);

  abi::Result DriverGetVersion(int* version) override;
  const char* GetErrorName(abi::Result result) override;
  abi::Result DeviceGetCount(int* count) override;
  abi::Result DeviceGet(abi::DeviceId* device, int ordinal) override;
  abi::Result DeviceGetName(char* name, int length,
                            abi::DeviceId device) override;
  abi::Result DeviceGetUuid(abi::Uuid* uuid, abi::DeviceId device) override;
  abi::Result DeviceGetAttribute(int* value, int attribute,
                                 abi::DeviceId device) override;
  abi::Result DevicePrimaryCtxRetain(abi::Context* context,
                                     abi::DeviceId device) override;
  abi::Result DevicePrimaryCtxRelease(abi::DeviceId device) override;
  abi::Result CtxPushCurrent(abi::Context context) override;
  abi::Result CtxPopCurrent(abi::Context* context) override;
  abi::Result StreamCreate(abi::Stream* stream, unsigned flags) override;
  abi::Result StreamDestroy(abi::Stream stream) override;
  abi::Result StreamSynchronize(abi::Stream stream) override;
  abi::Result StreamWaitEvent(abi::Stream stream, abi::Event event,
                              unsigned flags) override;
  abi::Result StreamIsCapturing(abi::Stream stream, int* status) override;
  abi::Result ThreadExchangeStreamCaptureMode(int* mode) override;
  abi::Result EventCreate(abi::Event* event, unsigned flags) override;
  abi::Result EventDestroy(abi::Event event) override;
  abi::Result EventRecord(abi::Event event, abi::Stream stream) override;
  // Returns true if the event's work is done. The second query does the work.
  abi::Result EventQuery(abi::Event event) override;
  abi::Result EventSynchronize(abi::Event event) override;
  abi::Result MemAlloc(abi::Address* address, size_t bytes) override;
  abi::Result MemFree(abi::Address address) override;
  abi::Result MemHostAlloc(void** memory, size_t bytes,
                           unsigned flags) override;
  abi::Result MemFreeHost(void* memory) override;
  abi::Result MemHostRegister(void* memory, size_t bytes,
                              unsigned flags) override;
  abi::Result MemHostUnregister(void* memory) override;
  abi::Result PointerGetAttribute(void* value, int attribute,
                                  abi::Address address) override;
  abi::Result MemGetAddressRange(abi::Address* address, size_t* bytes,
                                 abi::Address within) override;
  abi::Result IpcGetMemHandle(abi::IpcMemHandle* handle,
                              abi::Address address) override;
  abi::Result IpcOpenMemHandle(abi::Address* address,
                               const abi::IpcMemHandle& handle,
                               unsigned flags) override;
  abi::Result IpcCloseMemHandle(abi::Address address) override;
  // Writes a descriptor of a copy of the pages. The test reads the copy.
  abi::Result MemGetHandleForAddressRange(void* handle, abi::Address address,
                                          size_t bytes, int type,
                                          uint64_t flags) override;
  abi::Result FlushGPUDirectRDMAWrites(int target, int scope) override;
  abi::Result DeviceCanAccessPeer(int* can, abi::DeviceId device,
                                  abi::DeviceId peer) override;
  abi::Result CtxEnablePeerAccess(abi::Context peer, unsigned flags) override;
  abi::Result MemcpyHtoDAsync(abi::Address to, const void* from, size_t bytes,
                              abi::Stream stream) override;
  abi::Result MemcpyDtoHAsync(void* to, abi::Address from, size_t bytes,
                              abi::Stream stream) override;
  abi::Result MemcpyDtoDAsync(abi::Address to, abi::Address from, size_t bytes,
                              abi::Stream stream) override;
  abi::Result MemcpyPeerAsync(abi::Address to, abi::Context to_context,
                              abi::Address from, abi::Context from_context,
                              size_t bytes, abi::Stream stream) override;
  // Loads the kernels of transport/device/kernels, which run on the CPU.
  abi::Result ModuleLoadData(abi::Module* module, const void* image) override;
  abi::Result ModuleUnload(abi::Module module) override;
  abi::Result ModuleGetFunction(abi::Function* function, abi::Module module,
                                const char* name) override;
  abi::Result LaunchKernel(abi::Function function, unsigned blocks,
                           unsigned threads, abi::Stream stream,
                           void** parameters) override;

 private:
  struct Block;  // of device memory

  // Counts the call. Returns the error with which it must fail, or kSuccess.
  abi::Result Begin(const char* name, bool destroys = false);
  // Returns the failure of a call that needs a context, or an object of a
  // context.
  abi::Result BeginHere(const char* name, bool destroys = false);
  // Returns the failure of a call that a capture forbids.
  abi::Result CheckCaptures(const char* name);
  // Records a violation if the stream is being captured.
  void CheckNotCaptured(const char* name, abi::Stream stream);
  bool Knows(abi::Stream stream) const { return streams_.count(stream) > 0; }
  static abi::Context Current();

  // Returns the CPU's address of device memory, or null if the range is not in
  // one block.
  char* Backing(abi::Address at, size_t bytes) const;
  // Returns the block that contains `at`, or null. Sets `begin` to the block's
  // first address.
  const Block* FindBlock(abi::Address at, abi::Address* begin) const;
  void Unmap(abi::Address begin, const Block& block);
  bool IsPinned(const void* memory, size_t bytes) const;
  // Queues a copy. `host` is the side in host memory, or null.
  abi::Result QueueCopy(const char* name, abi::Stream stream, char* to,
                        const char* from, size_t bytes, const void* host);
  void RunUntil(abi::Stream stream, uint64_t target);
  void RunAll();
  void CheckUnused(const char* what, const void* memory, size_t bytes);

  const int devices_;
  const uint64_t bytes_of_each_;
  mutable std::recursive_mutex mu_;
  std::map<std::string, int> calls_of_;
  int calls_ = 0;
  int fail_at_ = 0;
  abi::Result fail_with_ = abi::kSuccess;
  abi::Result lost_ = abi::kSuccess;
  bool refuses_pinning_ = false;
  std::vector<std::string> violations_;
  std::vector<std::unique_ptr<abi::ContextObject>> contexts_;
  std::vector<uint64_t> used_;  // per device
  std::vector<int> hardware_;
  std::map<int, int> attributes_;
  bool refuses_ipc_ = false;
  bool refuses_peers_ = false;
  std::set<std::pair<int, int>> reaches_;
  std::map<abi::Address, Block> blocks_;
  std::map<const char*, size_t> pinned_;      // allocated
  std::map<const char*, size_t> registered_;  // of the program
  std::set<abi::Stream> streams_;
  std::set<abi::Stream> program_streams_;
  std::set<abi::Stream> captured_;
  std::set<abi::Event> events_;
  std::map<abi::Module, std::vector<std::unique_ptr<abi::FunctionObject>>>
      modules_;
};

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_DEVICE_FAKE_DRIVER_H_
