#include "transport/device/library.h"

#include <dlfcn.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "transport/device/status.h"

namespace penstock {
namespace device {
namespace {

// The version of CUDA 11.0, the first release whose driver has all mandatory
// functions.
constexpr int kOldestVersion = 11000;

struct Symbols {
  abi::Result (*cuInit)(unsigned) = nullptr;
  abi::Result (*cuDriverGetVersion)(int*) = nullptr;
  abi::Result (*cuGetErrorName)(abi::Result, const char**) = nullptr;
  abi::Result (*cuDeviceGetCount)(int*) = nullptr;
  abi::Result (*cuDeviceGet)(abi::DeviceId*, int) = nullptr;
  abi::Result (*cuDeviceGetName)(char*, int, abi::DeviceId) = nullptr;
  abi::Result (*cuDeviceGetUuid)(abi::Uuid*, abi::DeviceId) = nullptr;
  // Distinguishes the instances (MIG) of a device. Null before CUDA 11.4.
  abi::Result (*cuDeviceGetUuid_v2)(abi::Uuid*, abi::DeviceId) = nullptr;
  abi::Result (*cuDeviceGetAttribute)(int*, int, abi::DeviceId) = nullptr;
  abi::Result (*cuDevicePrimaryCtxRetain)(abi::Context*,
                                          abi::DeviceId) = nullptr;
  abi::Result (*cuDevicePrimaryCtxRelease_v2)(abi::DeviceId) = nullptr;
  abi::Result (*cuCtxPushCurrent_v2)(abi::Context) = nullptr;
  abi::Result (*cuCtxPopCurrent_v2)(abi::Context*) = nullptr;
  abi::Result (*cuStreamCreate)(abi::Stream*, unsigned) = nullptr;
  abi::Result (*cuStreamDestroy_v2)(abi::Stream) = nullptr;
  abi::Result (*cuStreamSynchronize)(abi::Stream) = nullptr;
  abi::Result (*cuStreamWaitEvent)(abi::Stream, abi::Event, unsigned) = nullptr;
  abi::Result (*cuStreamIsCapturing)(abi::Stream, int*) = nullptr;
  abi::Result (*cuThreadExchangeStreamCaptureMode)(int*) = nullptr;
  abi::Result (*cuEventCreate)(abi::Event*, unsigned) = nullptr;
  abi::Result (*cuEventDestroy_v2)(abi::Event) = nullptr;
  abi::Result (*cuEventRecord)(abi::Event, abi::Stream) = nullptr;
  abi::Result (*cuEventQuery)(abi::Event) = nullptr;
  abi::Result (*cuEventSynchronize)(abi::Event) = nullptr;
  abi::Result (*cuMemAlloc_v2)(abi::Address*, size_t) = nullptr;
  abi::Result (*cuMemFree_v2)(abi::Address) = nullptr;
  abi::Result (*cuMemHostAlloc)(void**, size_t, unsigned) = nullptr;
  abi::Result (*cuMemFreeHost)(void*) = nullptr;
  abi::Result (*cuMemHostRegister_v2)(void*, size_t, unsigned) = nullptr;
  abi::Result (*cuMemHostUnregister)(void*) = nullptr;
  abi::Result (*cuPointerGetAttribute)(void*, int, abi::Address) = nullptr;
  abi::Result (*cuMemGetAddressRange_v2)(abi::Address*, size_t*,
                                         abi::Address) = nullptr;
  abi::Result (*cuIpcGetMemHandle)(abi::IpcMemHandle*, abi::Address) = nullptr;
  abi::Result (*cuIpcOpenMemHandle_v2)(abi::Address*, abi::IpcMemHandle,
                                       unsigned) = nullptr;
  abi::Result (*cuIpcCloseMemHandle)(abi::Address) = nullptr;
  // Exports memory as a dmabuf. Null before CUDA 11.7.
  abi::Result (*cuMemGetHandleForAddressRange)(void*, abi::Address, size_t, int,
                                               unsigned long long) = nullptr;
  // Makes writes of network devices visible. Null before CUDA 11.3.
  abi::Result (*cuFlushGPUDirectRDMAWrites)(int, int) = nullptr;
  abi::Result (*cuDeviceCanAccessPeer)(int*, abi::DeviceId,
                                       abi::DeviceId) = nullptr;
  abi::Result (*cuCtxEnablePeerAccess)(abi::Context, unsigned) = nullptr;
  abi::Result (*cuMemcpyHtoDAsync_v2)(abi::Address, const void*, size_t,
                                      abi::Stream) = nullptr;
  abi::Result (*cuMemcpyDtoHAsync_v2)(void*, abi::Address, size_t,
                                      abi::Stream) = nullptr;
  abi::Result (*cuMemcpyDtoDAsync_v2)(abi::Address, abi::Address, size_t,
                                      abi::Stream) = nullptr;
  abi::Result (*cuMemcpyPeerAsync)(abi::Address, abi::Context, abi::Address,
                                   abi::Context, size_t, abi::Stream) = nullptr;
  abi::Result (*cuModuleLoadData)(abi::Module*, const void*) = nullptr;
  abi::Result (*cuModuleUnload)(abi::Module) = nullptr;
  abi::Result (*cuModuleGetFunction)(abi::Function*, abi::Module,
                                     const char*) = nullptr;
  abi::Result (*cuLaunchKernel)(abi::Function, unsigned, unsigned, unsigned,
                                unsigned, unsigned, unsigned, unsigned,
                                abi::Stream, void**, void**) = nullptr;
};

class LibraryApi : public Api {
 public:
  explicit LibraryApi(const Symbols& symbols) : call_(symbols) {}

  abi::Result DriverGetVersion(int* version) override {
    return call_.cuDriverGetVersion(version);
  }
  const char* GetErrorName(abi::Result result) override {
    const char* name = nullptr;
    return call_.cuGetErrorName(result, &name) == abi::kSuccess ? name
                                                                : nullptr;
  }
  abi::Result DeviceGetCount(int* count) override {
    return call_.cuDeviceGetCount(count);
  }
  abi::Result DeviceGet(abi::DeviceId* device, int ordinal) override {
    return call_.cuDeviceGet(device, ordinal);
  }
  abi::Result DeviceGetName(char* name, int length,
                            abi::DeviceId device) override {
    return call_.cuDeviceGetName(name, length, device);
  }
  abi::Result DeviceGetUuid(abi::Uuid* uuid, abi::DeviceId device) override {
    return call_.cuDeviceGetUuid_v2 != nullptr
               ? call_.cuDeviceGetUuid_v2(uuid, device)
               : call_.cuDeviceGetUuid(uuid, device);
  }
  abi::Result DeviceGetAttribute(int* value, int attribute,
                                 abi::DeviceId device) override {
    return call_.cuDeviceGetAttribute(value, attribute, device);
  }
  abi::Result DevicePrimaryCtxRetain(abi::Context* context,
                                     abi::DeviceId device) override {
    return call_.cuDevicePrimaryCtxRetain(context, device);
  }
  abi::Result DevicePrimaryCtxRelease(abi::DeviceId device) override {
    return call_.cuDevicePrimaryCtxRelease_v2(device);
  }
  abi::Result CtxPushCurrent(abi::Context context) override {
    return call_.cuCtxPushCurrent_v2(context);
  }
  abi::Result CtxPopCurrent(abi::Context* context) override {
    return call_.cuCtxPopCurrent_v2(context);
  }
  abi::Result StreamCreate(abi::Stream* stream, unsigned flags) override {
    return call_.cuStreamCreate(stream, flags);
  }
  abi::Result StreamDestroy(abi::Stream stream) override {
    return call_.cuStreamDestroy_v2(stream);
  }
  abi::Result StreamSynchronize(abi::Stream stream) override {
    return call_.cuStreamSynchronize(stream);
  }
  abi::Result StreamWaitEvent(abi::Stream stream, abi::Event event,
                              unsigned flags) override {
    return call_.cuStreamWaitEvent(stream, event, flags);
  }
  abi::Result StreamIsCapturing(abi::Stream stream, int* status) override {
    return call_.cuStreamIsCapturing(stream, status);
  }
  abi::Result ThreadExchangeStreamCaptureMode(int* mode) override {
    return call_.cuThreadExchangeStreamCaptureMode(mode);
  }
  abi::Result EventCreate(abi::Event* event, unsigned flags) override {
    return call_.cuEventCreate(event, flags);
  }
  abi::Result EventDestroy(abi::Event event) override {
    return call_.cuEventDestroy_v2(event);
  }
  abi::Result EventRecord(abi::Event event, abi::Stream stream) override {
    return call_.cuEventRecord(event, stream);
  }
  abi::Result EventQuery(abi::Event event) override {
    return call_.cuEventQuery(event);
  }
  abi::Result EventSynchronize(abi::Event event) override {
    return call_.cuEventSynchronize(event);
  }
  abi::Result MemAlloc(abi::Address* address, size_t bytes) override {
    return call_.cuMemAlloc_v2(address, bytes);
  }
  abi::Result MemFree(abi::Address address) override {
    return call_.cuMemFree_v2(address);
  }
  abi::Result MemHostAlloc(void** memory, size_t bytes,
                           unsigned flags) override {
    return call_.cuMemHostAlloc(memory, bytes, flags);
  }
  abi::Result MemFreeHost(void* memory) override {
    return call_.cuMemFreeHost(memory);
  }
  abi::Result MemHostRegister(void* memory, size_t bytes,
                              unsigned flags) override {
    return call_.cuMemHostRegister_v2(memory, bytes, flags);
  }
  abi::Result MemHostUnregister(void* memory) override {
    return call_.cuMemHostUnregister(memory);
  }
  abi::Result PointerGetAttribute(void* value, int attribute,
                                  abi::Address address) override {
    return call_.cuPointerGetAttribute(value, attribute, address);
  }
  abi::Result MemGetAddressRange(abi::Address* address, size_t* bytes,
                                 abi::Address within) override {
    return call_.cuMemGetAddressRange_v2(address, bytes, within);
  }
  abi::Result IpcGetMemHandle(abi::IpcMemHandle* handle,
                              abi::Address address) override {
    return call_.cuIpcGetMemHandle(handle, address);
  }
  abi::Result IpcOpenMemHandle(abi::Address* address,
                               const abi::IpcMemHandle& handle,
                               unsigned flags) override {
    return call_.cuIpcOpenMemHandle_v2(address, handle, flags);
  }
  abi::Result IpcCloseMemHandle(abi::Address address) override {
    return call_.cuIpcCloseMemHandle(address);
  }
  abi::Result MemGetHandleForAddressRange(void* handle, abi::Address address,
                                          size_t bytes, int type,
                                          uint64_t flags) override {
    if (call_.cuMemGetHandleForAddressRange == nullptr) {
      return abi::kNotSupported;
    }
    return call_.cuMemGetHandleForAddressRange(handle, address, bytes, type,
                                               flags);
  }
  abi::Result FlushGPUDirectRDMAWrites(int target, int scope) override {
    if (call_.cuFlushGPUDirectRDMAWrites == nullptr) {
      return abi::kNotSupported;
    }
    return call_.cuFlushGPUDirectRDMAWrites(target, scope);
  }
  abi::Result DeviceCanAccessPeer(int* can, abi::DeviceId device,
                                  abi::DeviceId peer) override {
    return call_.cuDeviceCanAccessPeer(can, device, peer);
  }
  abi::Result CtxEnablePeerAccess(abi::Context peer, unsigned flags) override {
    return call_.cuCtxEnablePeerAccess(peer, flags);
  }
  abi::Result MemcpyHtoDAsync(abi::Address to, const void* from, size_t bytes,
                              abi::Stream stream) override {
    return call_.cuMemcpyHtoDAsync_v2(to, from, bytes, stream);
  }
  abi::Result MemcpyDtoHAsync(void* to, abi::Address from, size_t bytes,
                              abi::Stream stream) override {
    return call_.cuMemcpyDtoHAsync_v2(to, from, bytes, stream);
  }
  abi::Result MemcpyDtoDAsync(abi::Address to, abi::Address from, size_t bytes,
                              abi::Stream stream) override {
    return call_.cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
  }
  abi::Result MemcpyPeerAsync(abi::Address to, abi::Context to_context,
                              abi::Address from, abi::Context from_context,
                              size_t bytes, abi::Stream stream) override {
    return call_.cuMemcpyPeerAsync(to, to_context, from, from_context, bytes,
                                   stream);
  }
  abi::Result ModuleLoadData(abi::Module* module, const void* image) override {
    return call_.cuModuleLoadData(module, image);
  }
  abi::Result ModuleUnload(abi::Module module) override {
    return call_.cuModuleUnload(module);
  }
  abi::Result ModuleGetFunction(abi::Function* function, abi::Module module,
                                const char* name) override {
    return call_.cuModuleGetFunction(function, module, name);
  }
  abi::Result LaunchKernel(abi::Function function, unsigned blocks,
                           unsigned threads, abi::Stream stream,
                           void** parameters) override {
    return call_.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1,
                                /*shared memory*/ 0, stream, parameters,
                                /*extra*/ nullptr);
  }

 private:
  const Symbols call_;
};

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

// Returns the name of a mandatory function that the library lacks, or null.
const char* FindAll(void* library, Symbols* symbols) {
#define PENSTOCK_FIND(name) \
  if (!Find(library, #name, &symbols->name)) return #name;
  PENSTOCK_FIND(cuInit)
  PENSTOCK_FIND(cuDriverGetVersion)
  PENSTOCK_FIND(cuGetErrorName)
  PENSTOCK_FIND(cuDeviceGetCount)
  PENSTOCK_FIND(cuDeviceGet)
  PENSTOCK_FIND(cuDeviceGetName)
  PENSTOCK_FIND(cuDeviceGetUuid)
  PENSTOCK_FIND(cuDeviceGetAttribute)
  PENSTOCK_FIND(cuDevicePrimaryCtxRetain)
  PENSTOCK_FIND(cuDevicePrimaryCtxRelease_v2)
  PENSTOCK_FIND(cuCtxPushCurrent_v2)
  PENSTOCK_FIND(cuCtxPopCurrent_v2)
  PENSTOCK_FIND(cuStreamCreate)
  PENSTOCK_FIND(cuStreamDestroy_v2)
  PENSTOCK_FIND(cuStreamSynchronize)
  PENSTOCK_FIND(cuStreamWaitEvent)
  PENSTOCK_FIND(cuStreamIsCapturing)
  PENSTOCK_FIND(cuThreadExchangeStreamCaptureMode)
  PENSTOCK_FIND(cuEventCreate)
  PENSTOCK_FIND(cuEventDestroy_v2)
  PENSTOCK_FIND(cuEventRecord)
  PENSTOCK_FIND(cuEventQuery)
  PENSTOCK_FIND(cuEventSynchronize)
  PENSTOCK_FIND(cuMemAlloc_v2)
  PENSTOCK_FIND(cuMemFree_v2)
  PENSTOCK_FIND(cuMemHostAlloc)
  PENSTOCK_FIND(cuMemFreeHost)
  PENSTOCK_FIND(cuMemHostRegister_v2)
  PENSTOCK_FIND(cuMemHostUnregister)
  PENSTOCK_FIND(cuPointerGetAttribute)
  PENSTOCK_FIND(cuMemGetAddressRange_v2)
  PENSTOCK_FIND(cuIpcGetMemHandle)
  PENSTOCK_FIND(cuIpcOpenMemHandle_v2)
  PENSTOCK_FIND(cuIpcCloseMemHandle)
  PENSTOCK_FIND(cuDeviceCanAccessPeer)
  PENSTOCK_FIND(cuCtxEnablePeerAccess)
  PENSTOCK_FIND(cuMemcpyHtoDAsync_v2)
  PENSTOCK_FIND(cuMemcpyDtoHAsync_v2)
  PENSTOCK_FIND(cuMemcpyDtoDAsync_v2)
  PENSTOCK_FIND(cuMemcpyPeerAsync)
  PENSTOCK_FIND(cuModuleLoadData)
  PENSTOCK_FIND(cuModuleUnload)
  PENSTOCK_FIND(cuModuleGetFunction)
  PENSTOCK_FIND(cuLaunchKernel)
#undef PENSTOCK_FIND
#define PENSTOCK_FIND_IF_THERE(name) Find(library, #name, &symbols->name);
  PENSTOCK_FIND_IF_THERE(cuDeviceGetUuid_v2)
  PENSTOCK_FIND_IF_THERE(cuMemGetHandleForAddressRange)
  PENSTOCK_FIND_IF_THERE(cuFlushGPUDirectRDMAWrites)
#undef PENSTOCK_FIND_IF_THERE
  return nullptr;
}

absl::Status CheckVersion(Api* api) {
  int version = 0;
  const abi::Result result = api->DriverGetVersion(&version);
  if (result != abi::kSuccess) {
    return CallFailed(api, result, "ask for the driver's version");
  }
  if (version >= kOldestVersion) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("this machine's NVIDIA driver has CUDA ", version / 1000,
                   ".", version % 1000 / 10,
                   ", and Penstock needs 11.0: install a newer driver"));
}

absl::StatusOr<Api*> Load() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    return absl::NotFoundError(
        absl::StrCat("no CUDA driver here: ", why == nullptr ? "" : why,
                     " (it comes with NVIDIA's driver)"));
  }
  Symbols symbols;
  const char* const missing = FindAll(library, &symbols);
  if (missing != nullptr) {
    return absl::UnimplementedError(absl::StrCat(
        "libcuda.so.1 lacks ", missing, ": install a newer NVIDIA driver"));
  }
  auto api = std::make_unique<LibraryApi>(symbols);
  const abi::Result started = symbols.cuInit(0);
  if (started != abi::kSuccess) {
    return CallFailed(api.get(), started, "start the CUDA driver");
  }
  absl::Status fits = CheckVersion(api.get());
  if (!fits.ok()) return fits;
  return api.release();
}

}  // namespace

absl::StatusOr<Api*> OpenLibrary() {
  static const auto* const opened = new absl::StatusOr<Api*>(Load());
  return *opened;
}

}  // namespace device
}  // namespace penstock
