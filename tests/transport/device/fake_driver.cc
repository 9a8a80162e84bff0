#include "tests/transport/device/fake_driver.h"

#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/transport/device/fake_objects.h"

namespace penstock {
namespace device {

namespace {

std::vector<abi::Context>& Stack() {
  thread_local std::vector<abi::Context> stack;
  return stack;
}

}  // namespace

FakeDriver::FakeDriver(int devices, uint64_t bytes_of_each)
    : devices_(devices), bytes_of_each_(bytes_of_each), used_(devices) {
  for (int i = 0; i < devices; ++i) {
    contexts_.push_back(std::make_unique<abi::ContextObject>());
    contexts_.back()->device = i;
    hardware_.push_back(i);
  }
}

FakeDriver::~FakeDriver() {
  for (abi::Stream stream : program_streams_) delete stream;
  SharedMemories::Get()->RemoveAllOf(this);
}

void FakeDriver::FailAfter(int after, abi::Result result) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  fail_at_ = calls_ + after + 1;
  fail_with_ = result;
}

void FakeDriver::FailNoMore() {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  fail_at_ = 0;
}

void FakeDriver::Lose(abi::Result result) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  lost_ = result;
}

void FakeDriver::RefusePinning(bool refuse) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  refuses_pinning_ = refuse;
}

void FakeDriver::SetAttribute(int attribute, int value) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  attributes_[attribute] = value;
}

void FakeDriver::SetVisible(const std::vector<int>& hardware) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  hardware_ = hardware;
}

int FakeDriver::calls() const {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  return calls_;
}

int FakeDriver::CallsOf(const std::string& name) const {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  auto it = calls_of_.find(name);
  return it == calls_of_.end() ? 0 : it->second;
}

std::string FakeDriver::Remains() const {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  std::string text;
  const auto say = [&text](size_t count, const char* what) {
    if (count > 0) absl::StrAppend(&text, count, " ", what, "; ");
  };
  say(streams_.size() - program_streams_.size(), "streams");
  say(events_.size(), "events");
  say(modules_.size(), "modules");
  say(blocks_.size() - OpenCount(), "blocks of device memory");
  say(OpenCount(), "open allocations of other processes");
  say(pinned_.size(), "blocks of pinned memory");
  say(registered_.size(), "pinned ranges");
  say(Stack().size(), "contexts entered on this thread");
  for (const auto& context : contexts_) say(context->retained, "retentions");
  return text;
}

std::vector<std::string> FakeDriver::violations() const {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  return violations_;
}

abi::Result FakeDriver::Begin(const char* name, bool destroys) {
  ++calls_of_[name];
  const abi::Result allowed = CheckCaptures(name);
  if (allowed != abi::kSuccess) return allowed;
  if (destroys) return abi::kSuccess;
  ++calls_;
  if (lost_ != abi::kSuccess) return lost_;
  return calls_ == fail_at_ ? fail_with_ : abi::kSuccess;
}

abi::Context FakeDriver::Current() {
  return Stack().empty() ? nullptr : Stack().back();
}

abi::Result FakeDriver::BeginHere(const char* name, bool destroys) {
  const abi::Result begun = Begin(name, destroys);
  if (begun != abi::kSuccess) return begun;
  if (Current() != nullptr) return abi::kSuccess;
  violations_.push_back(absl::StrCat(name, " without a context"));
  return abi::kInvalidContext;
}

abi::Stream FakeDriver::ProgramStream(int device) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  auto* const stream = new abi::StreamObject();
  stream->device = device;
  streams_.insert(stream);
  program_streams_.insert(stream);
  return stream;
}

void FakeDriver::QueueFill(abi::Stream stream, abi::Address at, char value,
                           size_t bytes) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  char* const to = Backing(at, bytes);
  abi::Work work;
  work.run = [to, value, bytes] { std::memset(to, value, bytes); };
  stream->queue.push_back(std::move(work));
  ++stream->queued;
}

void FakeDriver::RunUntil(abi::Stream stream, uint64_t target) {
  while (stream->done < target && !stream->queue.empty()) {
    const abi::Work work = std::move(stream->queue.front());
    stream->queue.pop_front();
    if (work.wait_for != nullptr && Knows(work.wait_for)) {
      RunUntil(work.wait_for, work.target);
    }
    if (work.run) work.run();
    ++stream->done;
  }
}

void FakeDriver::RunAll() {
  for (abi::Stream stream : streams_) RunUntil(stream, stream->queued);
}

abi::Result FakeDriver::DriverGetVersion(int* version) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  *version = 12040;
  return Begin("DriverGetVersion");
}

const char* FakeDriver::GetErrorName(abi::Result result) {
  switch (result) {
    case abi::kOutOfMemory:
      return "CUDA_ERROR_OUT_OF_MEMORY";
    case abi::kIllegalAddress:
      return "CUDA_ERROR_ILLEGAL_ADDRESS";
    case abi::kInvalidValue:
      return "CUDA_ERROR_INVALID_VALUE";
    case abi::kNotSupported:
      return "CUDA_ERROR_NOT_SUPPORTED";
    default:
      return nullptr;
  }
}

abi::Result FakeDriver::DeviceGetCount(int* count) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  *count = devices_;
  return Begin("DeviceGetCount");
}

abi::Result FakeDriver::DeviceGet(abi::DeviceId* device, int ordinal) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const abi::Result begun = Begin("DeviceGet");
  if (begun != abi::kSuccess) return begun;
  *device = ordinal;
  return ordinal >= 0 && ordinal < devices_ ? abi::kSuccess
                                            : abi::kInvalidDevice;
}

abi::Result FakeDriver::DeviceGetName(char* name, int length,
                                      abi::DeviceId device) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  std::snprintf(name, length, "Fake GPU");
  return Begin("DeviceGetName");
}

abi::Result FakeDriver::DeviceGetUuid(abi::Uuid* uuid, abi::DeviceId device) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  std::memset(uuid->bytes, hardware_[device] + 1, sizeof uuid->bytes);
  return Begin("DeviceGetUuid");
}

abi::Result FakeDriver::DeviceGetAttribute(int* value, int attribute,
                                           abi::DeviceId device) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const auto set = attributes_.find(attribute);
  *value = attribute == abi::kPciBusId ? 15 + device : 1;
  if (set != attributes_.end()) *value = set->second;
  return Begin("DeviceGetAttribute");
}

abi::Result FakeDriver::DevicePrimaryCtxRetain(abi::Context* context,
                                               abi::DeviceId device) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const abi::Result begun = Begin("DevicePrimaryCtxRetain");
  if (begun != abi::kSuccess) return begun;
  *context = contexts_[device].get();
  ++(*context)->retained;
  return abi::kSuccess;
}

abi::Result FakeDriver::DevicePrimaryCtxRelease(abi::DeviceId device) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  (void)Begin("DevicePrimaryCtxRelease", true);
  --contexts_[device]->retained;
  return abi::kSuccess;
}

abi::Result FakeDriver::CtxPushCurrent(abi::Context context) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const abi::Result begun = Begin("CtxPushCurrent");
  if (begun == abi::kSuccess) Stack().push_back(context);
  return begun;
}

abi::Result FakeDriver::CtxPopCurrent(abi::Context* context) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  (void)Begin("CtxPopCurrent", true);
  if (Stack().empty()) return abi::kInvalidContext;
  *context = Stack().back();
  Stack().pop_back();
  return abi::kSuccess;
}

abi::Result FakeDriver::StreamCreate(abi::Stream* stream, unsigned flags) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const abi::Result begun = BeginHere("StreamCreate");
  if (begun != abi::kSuccess) return begun;
  *stream = new abi::StreamObject();
  (*stream)->device = Current()->device;
  streams_.insert(*stream);
  return abi::kSuccess;
}

abi::Result FakeDriver::StreamDestroy(abi::Stream stream) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  (void)Begin("StreamDestroy", true);
  if (streams_.erase(stream) == 0) return abi::kInvalidHandle;
  // Records a violation, although CUDA allows this call. CUDA would first
  // finish the copies.
  if (!stream->queue.empty() && lost_ == abi::kSuccess) {
    violations_.emplace_back("a stream was destroyed with copies in it");
  }
  delete stream;
  return abi::kSuccess;
}

abi::Result FakeDriver::StreamSynchronize(abi::Stream stream) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const abi::Result begun = Begin("StreamSynchronize");
  if (begun == abi::kSuccess) RunUntil(stream, stream->queued);
  return begun;
}

abi::Result FakeDriver::StreamWaitEvent(abi::Stream stream, abi::Event event,
                                        unsigned flags) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const abi::Result begun = BeginHere("StreamWaitEvent");
  if (begun != abi::kSuccess) return begun;
  if (events_.count(event) == 0 || !Knows(stream)) return abi::kInvalidHandle;
  CheckNotCaptured("StreamWaitEvent", stream);
  abi::Work work;
  work.wait_for = event->stream;
  work.target = event->target;
  stream->queue.push_back(std::move(work));
  ++stream->queued;
  return abi::kSuccess;
}

abi::Result FakeDriver::EventCreate(abi::Event* event, unsigned flags) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const abi::Result begun = BeginHere("EventCreate");
  if (begun != abi::kSuccess) return begun;
  *event = new abi::EventObject();
  (*event)->device = Current()->device;
  events_.insert(*event);
  return abi::kSuccess;
}

abi::Result FakeDriver::EventDestroy(abi::Event event) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  (void)Begin("EventDestroy", true);
  if (events_.erase(event) == 0) return abi::kInvalidHandle;
  delete event;
  return abi::kSuccess;
}

abi::Result FakeDriver::EventRecord(abi::Event event, abi::Stream stream) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const abi::Result begun = BeginHere("EventRecord");
  if (begun != abi::kSuccess) return begun;
  if (!Knows(stream) || event->device != stream->device) {
    return abi::kInvalidHandle;
  }
  CheckNotCaptured("EventRecord", stream);
  event->stream = stream;
  event->target = stream->queued;
  return abi::kSuccess;
}

abi::Result FakeDriver::EventQuery(abi::Event event) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const abi::Result begun = Begin("EventQuery");
  if (begun != abi::kSuccess) return begun;
  if (event->stream == nullptr || !Knows(event->stream) ||
      event->stream->done >= event->target) {
    return abi::kSuccess;
  }
  if (!std::exchange(event->is_asked_for, true)) return abi::kNotReady;
  RunUntil(event->stream, event->target);
  return abi::kSuccess;
}

abi::Result FakeDriver::EventSynchronize(abi::Event event) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const abi::Result begun = Begin("EventSynchronize");
  if (begun != abi::kSuccess) return begun;
  if (event->stream != nullptr && Knows(event->stream)) {
    RunUntil(event->stream, event->target);
  }
  return abi::kSuccess;
}

}  // namespace device
}  // namespace penstock
