// Messages from rank to rank.

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "frameworks/torch/backend.h"
#include "frameworks/torch/engine.h"
#include "frameworks/torch/errors.h"
#include "frameworks/torch/mailbox.h"
#include "frameworks/torch/tensors.h"
#include "frameworks/torch/torch_headers.h"
#include "frameworks/torch/work.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace pytorch {
namespace {

using c10d::OpType;

// A tensor whose memory is in use by an operation, and a copy without gaps if
// the tensor has gaps.
struct Held {
  explicit Held(const at::Tensor& held) : tensor(held), packed(tensor) {}
  const at::Tensor tensor;
  const Packed packed;
};

// Returns the exception that the function throws.
std::exception_ptr ErrorIn(const std::function<void()>& function) {
  try {
    function();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

// Returns a function that ends the operation.
Mailbox::Done EndOf(Engine* engine,
                    const c10::intrusive_ptr<Operation>& operation,
                    const char* title, std::function<void()> received) {
  return [engine, operation, title, received = std::move(received)](
             const absl::Status& status, int source) {
    std::exception_ptr error;
    if (!status.ok()) {
      error = ErrorOf(title, status);
    } else if (received) {
      error = ErrorIn(received);
    }
    operation->set_source(source);
    operation->Finish(error);
    const std::function<void()> complete =
        CallBack(engine->workers(), operation);
    if (complete != nullptr) complete();
  };
}

}  // namespace

c10::intrusive_ptr<Operation> Backend::MakeMessage(OpType type,
                                                   const char* title,
                                                   const Tensors& tensors) {
  Operation::Description description{type, title};
  description.timeout = options_->timeout;
  return c10::make_intrusive<Operation>(getRank(), description, tensors,
                                        tensors, nullptr);
}

Backend::Work Backend::send(Tensors& tensors, int to, int tag) {
  static constexpr char kTitle[] = "penstock:send";
  const std::shared_ptr<Engine> engine = CheckEngine(kTitle);
  const auto held = std::make_shared<Held>(OnlyTensor("send", tensors));
  auto operation = MakeMessage(OpType::SEND, kTitle, tensors);
  memory::Bytes bytes;
  bytes.data = static_cast<const uint8_t*>(held->packed.data());
  bytes.size = held->packed.tensor().nbytes();
  bytes.owner = held;
  engine->mailbox()->Send(to, static_cast<uint32_t>(tag),
                          memory::Payload(std::move(bytes)),
                          EndOf(engine.get(), operation, kTitle, nullptr));
  return operation;
}

Backend::Work Backend::Receive(OpType type, const char* title,
                               const Tensors& tensors, int from, int tag) {
  const std::shared_ptr<Engine> engine = CheckEngine(title);
  const auto held = std::make_shared<Held>(OnlyTensor("recv", tensors));
  auto operation = MakeMessage(type, title, tensors);
  const auto unpack = [held] { held->packed.Unpack(); };
  engine->mailbox()->Receive(
      from, static_cast<uint32_t>(tag), held->packed.data(),
      static_cast<int64_t>(held->packed.tensor().nbytes()),
      EndOf(engine.get(), operation, title, unpack));
  return operation;
}

Backend::Work Backend::recv(Tensors& tensors, int from, int tag) {
  return Receive(OpType::RECV, "penstock:recv", tensors, from, tag);
}

Backend::Work Backend::recvAnysource(Tensors& tensors, int tag) {
  return Receive(OpType::RECVANYSOURCE, "penstock:recvAnySource", tensors,
                 Mailbox::kAnyRank, tag);
}

}  // namespace pytorch
}  // namespace penstock
