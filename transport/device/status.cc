#include "transport/device/status.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace device {
namespace {

struct Meaning {
  abi::Result result;
  absl::StatusCode code;
  bool sticky;
  const char* remedy;  // may be empty
};

constexpr char kRestart[] =
    "the device is lost to this process: find the kernel that failed "
    "(compute-sanitizer), and restart";

constexpr char kCaptured[] =
    "the stream is being captured into a graph: send and receive outside of "
    "the capture";

// The meanings of results. Results that are not listed are INTERNAL.
constexpr Meaning kMeanings[] = {
    {abi::kInvalidValue, absl::StatusCode::kInvalidArgument, false, ""},
    {abi::kOutOfMemory, absl::StatusCode::kResourceExhausted, false,
     "free some memory, or use less"},
    {abi::kNotInitialized, absl::StatusCode::kFailedPrecondition, false,
     "CUDA does not survive a fork: exec, or fork before its first use"},
    {abi::kDeinitialized, absl::StatusCode::kUnavailable, true,
     "the process is exiting"},
    {abi::kNoDevice, absl::StatusCode::kNotFound, false,
     "no NVIDIA device here, or CUDA_VISIBLE_DEVICES hides it"},
    {abi::kInvalidDevice, absl::StatusCode::kNotFound, false,
     "no such device: see nvidia-smi -L"},
    {abi::kInvalidContext, absl::StatusCode::kFailedPrecondition, false,
     "do not reset the device or destroy its context"},
    {abi::kEccUncorrectable, absl::StatusCode::kUnavailable, true, kRestart},
    {abi::kPeerAccessUnsupported, absl::StatusCode::kUnimplemented, false, ""},
    {abi::kOperatingSystem, absl::StatusCode::kUnavailable, false, ""},
    {abi::kMapFailed, absl::StatusCode::kUnavailable, false, ""},
    {abi::kAlreadyMapped, absl::StatusCode::kFailedPrecondition, false, ""},
    {abi::kTooManyPeers, absl::StatusCode::kResourceExhausted, false, ""},
    {abi::kNoBinaryForGpu, absl::StatusCode::kUnimplemented, false,
     "the kernels were built for other devices: build with a CUDA Toolkit that "
     "knows this one, or a newer driver"},
    {abi::kInvalidHandle, absl::StatusCode::kInvalidArgument, false, ""},
    {abi::kNotFound, absl::StatusCode::kNotFound, false, ""},
    {abi::kIllegalAddress, absl::StatusCode::kUnavailable, true, kRestart},
    {abi::kLaunchTimeout, absl::StatusCode::kUnavailable, true, kRestart},
    {abi::kContextIsDestroyed, absl::StatusCode::kUnavailable, true,
     "do not reset the device or destroy its context; restart"},
    {abi::kAssert, absl::StatusCode::kUnavailable, true, kRestart},
    {abi::kHardwareStackError, absl::StatusCode::kUnavailable, true, kRestart},
    {abi::kIllegalInstruction, absl::StatusCode::kUnavailable, true, kRestart},
    {abi::kMisalignedAddress, absl::StatusCode::kUnavailable, true, kRestart},
    {abi::kInvalidAddressSpace, absl::StatusCode::kUnavailable, true, kRestart},
    {abi::kInvalidPc, absl::StatusCode::kUnavailable, true, kRestart},
    {abi::kLaunchFailed, absl::StatusCode::kUnavailable, true, kRestart},
    {abi::kNotPermitted, absl::StatusCode::kPermissionDenied, false, ""},
    {abi::kNotSupported, absl::StatusCode::kUnimplemented, false, ""},
    {abi::kSystemDriverMismatch, absl::StatusCode::kFailedPrecondition, false,
     "the kernel's driver and libcuda.so.1 are of two releases: reboot, or "
     "install them together"},
    {abi::kStreamCaptureUnsupported, absl::StatusCode::kFailedPrecondition,
     false, kCaptured},
    {abi::kStreamCaptureInvalidated, absl::StatusCode::kFailedPrecondition,
     false, kCaptured},
    {abi::kStreamCaptureIsolation, absl::StatusCode::kFailedPrecondition, false,
     kCaptured},
    {abi::kStreamCaptureImplicit, absl::StatusCode::kFailedPrecondition, false,
     kCaptured},
    {abi::kCapturedEvent, absl::StatusCode::kFailedPrecondition, false,
     kCaptured},
};

const Meaning* Find(abi::Result result) {
  for (const Meaning& meaning : kMeanings) {
    if (meaning.result == result) return &meaning;
  }
  return nullptr;
}

std::string NameOf(Api* api, abi::Result result) {
  const char* const name = api->GetErrorName(result);
  return name != nullptr ? name : absl::StrCat("CUDA error ", result);
}

}  // namespace

absl::Status CallFailed(Api* api, abi::Result result,
                        absl::string_view operation) {
  const Meaning* const meaning = Find(result);
  std::string text = absl::StrCat(operation, ": ", NameOf(api, result));
  if (meaning == nullptr) return absl::InternalError(text);
  if (meaning->remedy[0] != '\0') absl::StrAppend(&text, "; ", meaning->remedy);
  return absl::Status(meaning->code, text);
}

bool IsSticky(abi::Result result) {
  const Meaning* const meaning = Find(result);
  return meaning != nullptr && meaning->sticky;
}

}  // namespace device
}  // namespace penstock
