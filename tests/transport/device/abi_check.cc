// Compares the declarations of CUDA's driver in transport/device with cuda.h.
// abi_test.py compiles this file if there is a CUDA Toolkit. Never run.

#include <cuda.h>

#include <type_traits>

#include "transport/device/abi.h"

namespace penstock {
namespace device {
namespace abi {

#define PENSTOCK_SAME(ours, theirs) \
  static_assert(ours == static_cast<decltype(ours)>(theirs), #ours)

PENSTOCK_SAME(kSuccess, CUDA_SUCCESS);
PENSTOCK_SAME(kInvalidValue, CUDA_ERROR_INVALID_VALUE);
PENSTOCK_SAME(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
PENSTOCK_SAME(kNotInitialized, CUDA_ERROR_NOT_INITIALIZED);
PENSTOCK_SAME(kDeinitialized, CUDA_ERROR_DEINITIALIZED);
PENSTOCK_SAME(kNoDevice, CUDA_ERROR_NO_DEVICE);
PENSTOCK_SAME(kInvalidDevice, CUDA_ERROR_INVALID_DEVICE);
PENSTOCK_SAME(kInvalidContext, CUDA_ERROR_INVALID_CONTEXT);
PENSTOCK_SAME(kMapFailed, CUDA_ERROR_MAP_FAILED);
PENSTOCK_SAME(kAlreadyMapped, CUDA_ERROR_ALREADY_MAPPED);
PENSTOCK_SAME(kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
PENSTOCK_SAME(kEccUncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE);
PENSTOCK_SAME(kPeerAccessUnsupported, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
PENSTOCK_SAME(kOperatingSystem, CUDA_ERROR_OPERATING_SYSTEM);
PENSTOCK_SAME(kInvalidHandle, CUDA_ERROR_INVALID_HANDLE);
PENSTOCK_SAME(kNotFound, CUDA_ERROR_NOT_FOUND);
PENSTOCK_SAME(kNotReady, CUDA_ERROR_NOT_READY);
PENSTOCK_SAME(kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS);
PENSTOCK_SAME(kLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT);
PENSTOCK_SAME(kPeerAccessAlreadyEnabled,
              CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
PENSTOCK_SAME(kContextIsDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
PENSTOCK_SAME(kAssert, CUDA_ERROR_ASSERT);
PENSTOCK_SAME(kTooManyPeers, CUDA_ERROR_TOO_MANY_PEERS);
PENSTOCK_SAME(kHostMemoryAlreadyRegistered,
              CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
PENSTOCK_SAME(kHostMemoryNotRegistered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
PENSTOCK_SAME(kHardwareStackError, CUDA_ERROR_HARDWARE_STACK_ERROR);
PENSTOCK_SAME(kIllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION);
PENSTOCK_SAME(kMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS);
PENSTOCK_SAME(kInvalidAddressSpace, CUDA_ERROR_INVALID_ADDRESS_SPACE);
PENSTOCK_SAME(kInvalidPc, CUDA_ERROR_INVALID_PC);
PENSTOCK_SAME(kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED);
PENSTOCK_SAME(kNotPermitted, CUDA_ERROR_NOT_PERMITTED);
PENSTOCK_SAME(kNotSupported, CUDA_ERROR_NOT_SUPPORTED);
PENSTOCK_SAME(kSystemDriverMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
PENSTOCK_SAME(kStreamCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
PENSTOCK_SAME(kStreamCaptureInvalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
PENSTOCK_SAME(kStreamCaptureIsolation, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
PENSTOCK_SAME(kStreamCaptureImplicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
PENSTOCK_SAME(kCapturedEvent, CUDA_ERROR_CAPTURED_EVENT);

PENSTOCK_SAME(kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
PENSTOCK_SAME(kPciBusId, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
PENSTOCK_SAME(kPciDeviceId, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
PENSTOCK_SAME(kPciDomainId, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
PENSTOCK_SAME(kAsyncEngineCount, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
PENSTOCK_SAME(kUnifiedAddressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
PENSTOCK_SAME(kGpuDirectRdmaSupported,
              CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED);
PENSTOCK_SAME(kGpuDirectRdmaFlushWritesOptions,
              CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
PENSTOCK_SAME(kGpuDirectRdmaWritesOrdering,
              CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING);
PENSTOCK_SAME(kFlushWritesByHost, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST);
PENSTOCK_SAME(kWritesOrderedForOwner, CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER);
PENSTOCK_SAME(kFlushWritesOfCurrentContext,
              CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX);
PENSTOCK_SAME(kFlushWritesToOwner, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER);
PENSTOCK_SAME(kDmaBufSupported, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);

PENSTOCK_SAME(kPointerMemoryType, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
PENSTOCK_SAME(kPointerBufferId, CU_POINTER_ATTRIBUTE_BUFFER_ID);
PENSTOCK_SAME(kPointerDeviceOrdinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
PENSTOCK_SAME(kPointerIsIpcCapable,
              CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE);
PENSTOCK_SAME(kRangeHandleDmaBufFd, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD);
PENSTOCK_SAME(kMemoryTypeDevice, CU_MEMORYTYPE_DEVICE);

PENSTOCK_SAME(kCaptureModeRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
PENSTOCK_SAME(kCaptureStatusNone, CU_STREAM_CAPTURE_STATUS_NONE);
PENSTOCK_SAME(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
PENSTOCK_SAME(kEventBlockingSync, CU_EVENT_BLOCKING_SYNC);
PENSTOCK_SAME(kEventDisableTiming, CU_EVENT_DISABLE_TIMING);
PENSTOCK_SAME(kHostAllocPortable, CU_MEMHOSTALLOC_PORTABLE);
PENSTOCK_SAME(kIpcLazyEnablePeerAccess, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
PENSTOCK_SAME(kHostRegisterPortable, CU_MEMHOSTREGISTER_PORTABLE);

static_assert(sizeof(Uuid) == sizeof(CUuuid), "");
static_assert(sizeof(IpcMemHandle) == sizeof(CUipcMemHandle), "");
static_assert(alignof(IpcMemHandle) == alignof(CUipcMemHandle), "");
static_assert(sizeof(DeviceId) == sizeof(CUdevice), "");
static_assert(sizeof(Address) == sizeof(CUdeviceptr), "");

// Checks the type of each function, as library.cc calls it.
#define PENSTOCK_TAKES(function, ...)                                        \
  static_assert(                                                             \
      std::is_same<decltype(&::function), CUresult (*)(__VA_ARGS__)>::value, \
      #function)

PENSTOCK_TAKES(cuDriverGetVersion, int*);
PENSTOCK_TAKES(cuGetErrorName, CUresult, const char**);
PENSTOCK_TAKES(cuDeviceGetCount, int*);
PENSTOCK_TAKES(cuDeviceGet, CUdevice*, int);
PENSTOCK_TAKES(cuDeviceGetName, char*, int, CUdevice);
PENSTOCK_TAKES(cuDeviceGetUuid_v2, CUuuid*, CUdevice);
PENSTOCK_TAKES(cuDeviceGetAttribute, int*, CUdevice_attribute, CUdevice);
PENSTOCK_TAKES(cuDevicePrimaryCtxRetain, CUcontext*, CUdevice);
PENSTOCK_TAKES(cuDevicePrimaryCtxRelease_v2, CUdevice);
PENSTOCK_TAKES(cuCtxPushCurrent_v2, CUcontext);
PENSTOCK_TAKES(cuCtxPopCurrent_v2, CUcontext*);
PENSTOCK_TAKES(cuStreamCreate, CUstream*, unsigned);
PENSTOCK_TAKES(cuStreamDestroy_v2, CUstream);
PENSTOCK_TAKES(cuStreamSynchronize, CUstream);
PENSTOCK_TAKES(cuStreamWaitEvent, CUstream, CUevent, unsigned);
PENSTOCK_TAKES(cuStreamIsCapturing, CUstream, CUstreamCaptureStatus*);
PENSTOCK_TAKES(cuThreadExchangeStreamCaptureMode, CUstreamCaptureMode*);
PENSTOCK_TAKES(cuEventCreate, CUevent*, unsigned);
PENSTOCK_TAKES(cuEventDestroy_v2, CUevent);
PENSTOCK_TAKES(cuEventRecord, CUevent, CUstream);
PENSTOCK_TAKES(cuEventQuery, CUevent);
PENSTOCK_TAKES(cuEventSynchronize, CUevent);
PENSTOCK_TAKES(cuMemAlloc_v2, CUdeviceptr*, size_t);
PENSTOCK_TAKES(cuMemFree_v2, CUdeviceptr);
PENSTOCK_TAKES(cuMemHostAlloc, void**, size_t, unsigned);
PENSTOCK_TAKES(cuMemFreeHost, void*);
PENSTOCK_TAKES(cuMemHostRegister_v2, void*, size_t, unsigned);
PENSTOCK_TAKES(cuMemHostUnregister, void*);
PENSTOCK_TAKES(cuPointerGetAttribute, void*, CUpointer_attribute, CUdeviceptr);
PENSTOCK_TAKES(cuMemGetAddressRange_v2, CUdeviceptr*, size_t*, CUdeviceptr);
PENSTOCK_TAKES(cuIpcGetMemHandle, CUipcMemHandle*, CUdeviceptr);
PENSTOCK_TAKES(cuIpcOpenMemHandle_v2, CUdeviceptr*, CUipcMemHandle, unsigned);
PENSTOCK_TAKES(cuIpcCloseMemHandle, CUdeviceptr);
PENSTOCK_TAKES(cuMemGetHandleForAddressRange, void*, CUdeviceptr, size_t,
               CUmemRangeHandleType, unsigned long long);
PENSTOCK_TAKES(cuFlushGPUDirectRDMAWrites, CUflushGPUDirectRDMAWritesTarget,
               CUflushGPUDirectRDMAWritesScope);
PENSTOCK_TAKES(cuDeviceCanAccessPeer, int*, CUdevice, CUdevice);
PENSTOCK_TAKES(cuCtxEnablePeerAccess, CUcontext, unsigned);
PENSTOCK_TAKES(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void*, size_t,
               CUstream);
PENSTOCK_TAKES(cuMemcpyDtoHAsync_v2, void*, CUdeviceptr, size_t, CUstream);
PENSTOCK_TAKES(cuMemcpyDtoDAsync_v2, CUdeviceptr, CUdeviceptr, size_t,
               CUstream);
PENSTOCK_TAKES(cuMemcpyPeerAsync, CUdeviceptr, CUcontext, CUdeviceptr,
               CUcontext, size_t, CUstream);
PENSTOCK_TAKES(cuModuleLoadData, CUmodule*, const void*);
PENSTOCK_TAKES(cuModuleUnload, CUmodule);
PENSTOCK_TAKES(cuModuleGetFunction, CUfunction*, CUmodule, const char*);
PENSTOCK_TAKES(cuLaunchKernel, CUfunction, unsigned, unsigned, unsigned,
               unsigned, unsigned, unsigned, unsigned, CUstream, void**,
               void**);

}  // namespace abi
}  // namespace device
}  // namespace penstock
