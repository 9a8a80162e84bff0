#include "cli/doctor/cuda.h"

#include <dlfcn.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace penstock::cli {
namespace {

// Of cuda.h, which is not needed to build this. The numbers are part of the
// driver's stable interface.
constexpr int kSuccess = 0;
constexpr int kNoDevice = 100;
constexpr int kGpuDirectRdmaSupported = 116;
constexpr int kDmaBufSupported = 124;

struct Driver {
  int (*cuInit)(unsigned) = nullptr;
  int (*cuDriverGetVersion)(int*) = nullptr;
  int (*cuDeviceGetCount)(int*) = nullptr;
  int (*cuDeviceGet)(int*, int) = nullptr;
  int (*cuDeviceGetAttribute)(int*, int, int) = nullptr;
};

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

absl::StatusOr<Driver> OpenDriver() {
  // Never closed: the driver has threads of its own.
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::NotFoundError("no CUDA driver here");
  Driver driver;
  if (!Find(library, "cuInit", &driver.cuInit) ||
      !Find(library, "cuDriverGetVersion", &driver.cuDriverGetVersion) ||
      !Find(library, "cuDeviceGetCount", &driver.cuDeviceGetCount) ||
      !Find(library, "cuDeviceGet", &driver.cuDeviceGet) ||
      !Find(library, "cuDeviceGetAttribute", &driver.cuDeviceGetAttribute)) {
    return absl::UnimplementedError("libcuda.so.1 lacks functions of CUDA");
  }
  return driver;
}

bool Has(const Driver& driver, int device, int attribute) {
  int value = 0;
  return driver.cuDeviceGetAttribute(&value, attribute, device) == kSuccess &&
         value != 0;
}

}  // namespace

absl::StatusOr<Cuda> LookAtCuda() {
  const absl::StatusOr<Driver> driver = OpenDriver();
  if (!driver.ok()) return driver.status();
  Cuda cuda;
  (void)driver->cuDriverGetVersion(&cuda.version);
  const int error = driver->cuInit(0);
  if (error == kNoDevice) return cuda;
  if (error != kSuccess ||
      driver->cuDeviceGetCount(&cuda.devices) != kSuccess) {
    return absl::UnavailableError(
        absl::StrCat("cuInit fails with error ", error));
  }
  cuda.has_gpudirect = cuda.has_dma_buf = cuda.devices > 0;
  for (int i = 0; i < cuda.devices; ++i) {
    int device = 0;
    if (driver->cuDeviceGet(&device, i) != kSuccess) continue;
    cuda.has_gpudirect &= Has(*driver, device, kGpuDirectRdmaSupported);
    cuda.has_dma_buf &= Has(*driver, device, kDmaBufSupported);
  }
  return cuda;
}

}  // namespace penstock::cli
