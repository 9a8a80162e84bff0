// CUDA's driver in memory, for tests: devices whose copies run late, and whose
// calls fail on demand.

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

// Behaves as the driver is documented to, in what this project uses:
//
//   addresses   of device memory cannot be read by the CPU: it crashes
//   streams     run only when somebody waits for them, and no further than
//   that;
//               so memory that is used again too early has the wrong bytes
//   pageable    memory of the host is copied at once, after what is queued;
//   only
//               pinned memory is copied late
//   contexts    are current on a thread, and calls without one fail
//   IPC         goes between two of this class, which stand for two processes:
//               a handle names memory of the other, and is worthless once it
//               was freed or the other has gone
//
//   captures    of a stream of the program's refuse what may spoil them, on
//               each thread that has not relaxed its mode
//
// What a program must never do is kept as a violation. Thread-safe.
class FakeDriver : public Api {
 public:
  explicit FakeDriver(int devices = 2, uint64_t bytes_of_each = 256 << 20);
  ~FakeDriver() override;

  // Has one call, after `after` others, fail. Calls that destroy are not
  // counted: what they return is dropped.
  void FailAfter(int after, abi::Result result);
  // Takes that back, if the call has not come.
  void FailNoMore();
  // Has every call fail from now on, as after an error of a kernel's.
  void Lose(abi::Result result);
  // Has an attribute of all devices be `value`, as of a device that lacks
  // something: 0.
  void SetAttribute(int attribute, int value);
  // Says which of the machine's devices cuda:0, cuda:1 ... are, as
  // CUDA_VISIBLE_DEVICES does: 0, 1, 2 ... at first. Call it before others.
  void SetVisible(const std::vector<int>& hardware);
  // Whether memory is of a kind that IPC does not share.
  void RefuseIpc(bool refuse);
  // Has no device reach another's memory.
  void RefusePeers();
  // Whether `device` was told to reach the memory of `peer`.
  bool Reaches(int device, int peer) const;
  // Returns how many allocations of others are open.
  size_t OpenCount() const;
  // Whether no host memory is pinned from now on.
  void RefusePinning(bool refuse);
  // Returns how many calls were counted.
  int calls() const;
  // Returns how often the call of that name was made.
  int CallsOf(const std::string& name) const;
  // Returns what there is of streams, events, memory and contexts, as text: ""
  // if there is nothing.
  std::string Remains() const;
  std::vector<std::string> violations() const;

  // A program's stream, which is not counted among the remains, and work in it:
  // fills memory with a byte when it runs.
  abi::Stream ProgramStream(int device);
  void QueueFill(abi::Stream stream, abi::Address at, char value, size_t bytes);
  // Begins and ends a capture of the program's stream, in the global mode.
  void BeginCapture(abi::Stream stream);
  void EndCapture(abi::Stream stream);
  // Reads and writes device memory at once.
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
  // Work that is asked for runs when it is asked for the second time.
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
  // The descriptor is of a copy of the pages, for the test to read.
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
  // Knows the kernels of transport/device/kernels, and runs them on the CPU.
  abi::Result ModuleLoadData(abi::Module* module, const void* image) override;
  abi::Result ModuleUnload(abi::Module module) override;
  abi::Result ModuleGetFunction(abi::Function* function, abi::Module module,
                                const char* name) override;
  abi::Result LaunchKernel(abi::Function function, unsigned blocks,
                           unsigned threads, abi::Stream stream,
                           void** parameters) override;

 private:
  struct Block;  // of device memory

  // Counts the call, and returns how it must fail.
  abi::Result Begin(const char* name, bool destroys = false);
  // Returns how the call must fail that needs a context, or one of these.
  abi::Result BeginHere(const char* name, bool destroys = false);
  // Returns how a call of that name must fail because of a capture.
  abi::Result CheckCaptures(const char* name);
  // Says that the call is a violation if the stream is being captured.
  void CheckNotCaptured(const char* name, abi::Stream stream);
  bool Knows(abi::Stream stream) const { return streams_.count(stream) > 0; }
  static abi::Context Current();

  // Where the CPU finds device memory; null: it is not all of one block.
  char* Backing(abi::Address at, size_t bytes) const;
  // Returns the block that `at` lies in, or null, and where it begins.
  const Block* FindBlock(abi::Address at, abi::Address* begin) const;
  void Unmap(abi::Address begin, const Block& block);
  bool IsPinned(const void* memory, size_t bytes) const;
  // Queues a copy, of which `host` is the side on the host, or null.
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
  std::vector<uint64_t> used_;  // of each device's memory
  std::vector<int> hardware_;
  std::map<int, int> attributes_;
  bool refuses_ipc_ = false;
  bool refuses_peers_ = false;
  std::set<std::pair<int, int>> reaches_;
  std::map<abi::Address, Block> blocks_;
  std::map<const char*, size_t> pinned_;      // allocated
  std::map<const char*, size_t> registered_;  // of the program's
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
