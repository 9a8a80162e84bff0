// Tests a tensor::Rendezvous with the calls of its service.
//
// The input is a list of calls: u8 kind, u16 message length, message.

#include <cstring>
#include <utility>

#include "grpcpp/support/byte_buffer.h"
#include "tensor_service/message.h"
#include "tensor_service/rendezvous.pb.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/rendezvous_calls.h"
#include "tests/fuzz/target.h"

namespace penstock {
namespace fuzz {
namespace {

std::string CallOf(RendezvousCalls::Call call, const std::string& message) {
  return Number<uint8_t>(call) + Number(static_cast<uint16_t>(message.size())) +
         message;
}

void SetKey(uint64_t step, tensor::v1::RendezvousKey* key) {
  key->set_step(step);
  key->set_name("w");
  key->set_source("a");
  key->set_destination("b");
}

template <typename Header>
std::string Flat(const Header& header) {
  tensor::Message<Header> message;
  message.header = header;
  tensor::Tensor tensor =
      *tensor::Tensor::Allocate(tensor::DType::kF32, {2, 3});
  std::memset(tensor.buffer()->mutable_data(), 7, tensor.byte_size());
  message.bundle.tensors.push_back({"", std::move(tensor)});
  grpc::Slice slice;
  Require(tensor::Encode(message)->DumpToSingleSlice(&slice).ok(), "whole");
  return std::string(reinterpret_cast<const char*>(slice.begin()),
                     slice.size());
}

}  // namespace

std::vector<std::string> Seeds() {
  tensor::v1::SendHeader send;
  SetKey(7, send.mutable_key());
  send.set_receivers(2);
  tensor::v1::ReceiveRequest receive;
  SetKey(7, receive.mutable_key());
  tensor::v1::RendezvousExchangeHeader exchange;
  SetKey(7, exchange.mutable_send()->mutable_key());
  SetKey(8, exchange.mutable_receive());
  tensor::v1::CancelStepRequest cancel;
  cancel.set_step(8);
  cancel.set_code(10);
  cancel.set_message("why");
  tensor::v1::FinishStepRequest finish;
  finish.set_step(7);
  const std::string sent = CallOf(RendezvousCalls::kSend, Flat(send));
  const std::string received =
      CallOf(RendezvousCalls::kReceive, receive.SerializeAsString());
  return {sent + received + received + sent,
          received + CallOf(RendezvousCalls::kCancelWait, "") + sent,
          CallOf(RendezvousCalls::kExchange, Flat(exchange)) + received +
              CallOf(RendezvousCalls::kCancelStep, cancel.SerializeAsString()),
          received +
              CallOf(RendezvousCalls::kFinishStep, finish.SerializeAsString()) +
              sent};
}

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock::fuzz;
  Input input(data, size);
  RendezvousCalls calls;
  while (!input.empty()) {
    const auto call = static_cast<RendezvousCalls::Call>(
        input.Number<uint8_t>() % RendezvousCalls::kCalls);
    const absl::Span<const uint8_t> bytes =
        input.Bytes(input.Number<uint16_t>());
    calls.Make(call, std::string(AsText(bytes)));
  }
  return 0;
}
