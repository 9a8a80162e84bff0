// The subset of CUDA's driver interface that this folder uses. Declared here,
// because most machines that build Penstock have no CUDA Toolkit. If cuda.h is
// present, abi_test.cc compares each line with it. The numbers are part of
// NVIDIA's binary interface, and do not change.

#ifndef PENSTOCK_TRANSPORT_DEVICE_ABI_H_
#define PENSTOCK_TRANSPORT_DEVICE_ABI_H_

#include <cstdint>

namespace penstock {
namespace device {
namespace abi {

// CUresult: the values that this folder distinguishes.
using Result = int;
constexpr Result kSuccess = 0;
constexpr Result kInvalidValue = 1;
constexpr Result kOutOfMemory = 2;
constexpr Result kNotInitialized = 3;
constexpr Result kDeinitialized = 4;
constexpr Result kNoDevice = 100;
constexpr Result kInvalidDevice = 101;
constexpr Result kInvalidContext = 201;
constexpr Result kMapFailed = 205;
constexpr Result kAlreadyMapped = 208;
constexpr Result kNoBinaryForGpu = 209;
constexpr Result kEccUncorrectable = 214;
constexpr Result kPeerAccessUnsupported = 217;
constexpr Result kOperatingSystem = 304;
constexpr Result kInvalidHandle = 400;
constexpr Result kNotFound = 500;
constexpr Result kNotReady = 600;
constexpr Result kIllegalAddress = 700;
constexpr Result kLaunchTimeout = 702;
constexpr Result kPeerAccessAlreadyEnabled = 704;
constexpr Result kContextIsDestroyed = 709;
constexpr Result kAssert = 710;
constexpr Result kTooManyPeers = 711;
constexpr Result kHostMemoryAlreadyRegistered = 712;
constexpr Result kHostMemoryNotRegistered = 713;
constexpr Result kHardwareStackError = 714;
constexpr Result kIllegalInstruction = 715;
constexpr Result kMisalignedAddress = 716;
constexpr Result kInvalidAddressSpace = 717;
constexpr Result kInvalidPc = 718;
constexpr Result kLaunchFailed = 719;
constexpr Result kNotPermitted = 800;
constexpr Result kNotSupported = 801;
constexpr Result kSystemDriverMismatch = 803;
constexpr Result kStreamCaptureUnsupported = 900;
constexpr Result kStreamCaptureInvalidated = 901;
constexpr Result kStreamCaptureIsolation = 905;
constexpr Result kStreamCaptureImplicit = 906;
constexpr Result kCapturedEvent = 907;

// CUdevice, CUcontext, CUstream, CUevent and CUdeviceptr.
using DeviceId = int;
struct ContextObject;
using Context = ContextObject*;
struct StreamObject;
using Stream = StreamObject*;
struct EventObject;
using Event = EventObject*;
using Address = uint64_t;
// Driver types CUmodule and CUfunction.
struct ModuleObject;
using Module = ModuleObject*;
struct FunctionObject;
using Function = FunctionObject*;

// Driver type CUuuid.
struct Uuid {
  char bytes[16];
};
// Driver type CUipcMemHandle. Identifies an allocation to other processes.
struct IpcMemHandle {
  char bytes[64];
};

// Values of CUdevice_attribute.
constexpr int kMultiprocessorCount = 16;
constexpr int kPciBusId = 33;
constexpr int kPciDeviceId = 34;
constexpr int kAsyncEngineCount = 40;
constexpr int kUnifiedAddressing = 41;
constexpr int kPciDomainId = 50;
constexpr int kGpuDirectRdmaSupported = 116;
constexpr int kGpuDirectRdmaFlushWritesOptions = 117;
constexpr int kGpuDirectRdmaWritesOrdering = 118;
constexpr int kDmaBufSupported = 124;

// Values of CUpointer_attribute. The attributes are, in this order: the kind of
// memory at an address (a CUmemorytype); a number of the allocation that is
// never reused in the process; the number of the device; and whether
// cuIpcGetMemHandle() can share the memory.
constexpr int kPointerMemoryType = 2;
constexpr int kPointerBufferId = 7;
constexpr int kPointerDeviceOrdinal = 9;
constexpr int kPointerIsIpcCapable = 10;
constexpr unsigned kMemoryTypeDevice = 2;

// A value of CUmemRangeHandleType.
constexpr int kRangeHandleDmaBufFd = 1;

// Values that tell when a device sees writes that network devices make to its
// memory. kFlushWritesByHost is a bit of kGpuDirectRdmaFlushWritesOptions, and
// means that cuFlushGPUDirectRDMAWrites() can be called. From the ordering
// kWritesOrderedForOwner on, the device that owns the memory sees the writes
// without a flush. The last two constants are the target and the scope of a
// flush.
constexpr int kFlushWritesByHost = 1;
constexpr int kWritesOrderedForOwner = 100;
constexpr int kFlushWritesOfCurrentContext = 0;
constexpr int kFlushWritesToOwner = 100;

// Values of CUstreamCaptureMode and of CUstreamCaptureStatus.
constexpr int kCaptureModeRelaxed = 2;
constexpr int kCaptureStatusNone = 0;

// Flags of cuStreamCreate(), cuEventCreate(), cuMemHostAlloc(),
// cuMemHostRegister() and cuIpcOpenMemHandle().
constexpr unsigned kStreamNonBlocking = 1;
constexpr unsigned kEventBlockingSync = 1;
constexpr unsigned kEventDisableTiming = 2;
constexpr unsigned kHostAllocPortable = 1;
constexpr unsigned kHostRegisterPortable = 1;
constexpr unsigned kIpcLazyEnablePeerAccess = 1;

}  // namespace abi
}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_ABI_H_
