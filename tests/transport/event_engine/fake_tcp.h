// A TCP connection in memory, between any two addresses.

#ifndef PENSTOCK_TESTS_TRANSPORT_EVENT_ENGINE_FAKE_TCP_H_
#define PENSTOCK_TESTS_TRANSPORT_EVENT_ENGINE_FAKE_TCP_H_

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "grpc/event_engine/event_engine.h"
#include "grpc/event_engine/slice.h"
#include "grpc/event_engine/slice_buffer.h"
#include "transport/event_engine/threads/crew.h"

namespace penstock {
namespace event_engine {

using grpc_event_engine::experimental::EventEngine;
using grpc_event_engine::experimental::Slice;
using grpc_event_engine::experimental::SliceBuffer;

inline EventEngine::ResolvedAddress AddressAt(const char* ip, uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, ip, &address.sin_addr);
  return {reinterpret_cast<const sockaddr*>(&address), sizeof address};
}

// One direction of the connection. Remembers all bytes. Thread-safe.
class Pipe {
 public:
  using Callback = absl::AnyInvocable<void(absl::Status)>;

  explicit Pipe(Crew* crew) : crew_(crew) {}

  void Write(const std::string& bytes) {
    std::lock_guard<std::mutex> lock(mu_);
    Take(bytes);
  }
  // Returns false if the pipe is full, and then calls `on_written` once there
  // is room.
  bool WriteIfRoom(const std::string& bytes, Callback on_written) {
    std::lock_guard<std::mutex> lock(mu_);
    if (!is_full_) {
      Take(bytes);
      return true;
    }
    held_ = bytes;
    on_written_ = std::move(on_written);
    return false;
  }
  // Delays writes until Empty(). Close() discards the delayed bytes.
  void Fill() {
    std::lock_guard<std::mutex> lock(mu_);
    is_full_ = true;
  }
  void Empty() {
    std::lock_guard<std::mutex> lock(mu_);
    is_full_ = false;
    if (on_written_ == nullptr) return;
    Take(held_);
    Call(&on_written_, absl::OkStatus());
  }
  bool Read(Callback on_read, SliceBuffer* buffer) {
    std::lock_guard<std::mutex> lock(mu_);
    if (read_ < all_.size()) {
      Deliver(buffer);
      return true;
    }
    on_read_ = std::move(on_read);
    buffer_ = buffer;
    if (is_closed_) Call(&on_read_, absl::UnavailableError("the end"));
    return false;
  }
  void Close() {
    std::lock_guard<std::mutex> lock(mu_);
    is_closed_ = true;
    const absl::Status end = absl::UnavailableError("the end");
    if (on_read_ != nullptr) Call(&on_read_, end);
    if (on_written_ != nullptr) Call(&on_written_, end);
  }
  std::string all() {
    std::lock_guard<std::mutex> lock(mu_);
    return all_;
  }

 private:
  void Take(const std::string& bytes) {
    all_ += bytes;
    if (on_read_ == nullptr) return;
    Deliver(buffer_);
    Call(&on_read_, absl::OkStatus());
  }
  void Deliver(SliceBuffer* buffer) {
    buffer->Append(Slice::FromCopiedString(all_.substr(read_)));
    read_ = all_.size();
  }
  void Call(Callback* callback, const absl::Status& status) {
    crew_->Run([call = std::exchange(*callback, nullptr), status]() mutable {
      call(status);
    });
  }

  Crew* const crew_;
  std::mutex mu_;
  std::string all_;
  size_t read_ = 0;
  bool is_closed_ = false;
  Callback on_read_;
  SliceBuffer* buffer_ = nullptr;
  bool is_full_ = false;
  std::string held_;
  Callback on_written_;  // of held_
};

// One end of the connection. The destructor closes both directions.
class FakeTcp final : public EventEngine::Endpoint {
 public:
  FakeTcp(std::shared_ptr<Pipe> in, std::shared_ptr<Pipe> out,
          EventEngine::ResolvedAddress local, EventEngine::ResolvedAddress peer)
      : in_(std::move(in)), out_(std::move(out)), local_(local), peer_(peer) {}
  ~FakeTcp() override {
    in_->Close();
    out_->Close();
  }

  bool Read(absl::AnyInvocable<void(absl::Status)> on_read, SliceBuffer* buffer,
            ReadArgs) override {
    return in_->Read(std::move(on_read), buffer);
  }
  bool Write(absl::AnyInvocable<void(absl::Status)> on_written,
             SliceBuffer* data, WriteArgs) override {
    std::string bytes;
    for (size_t i = 0; i < data->Count(); ++i) {
      bytes += std::string(data->RefSlice(i).as_string_view());
    }
    data->Clear();
    return out_->WriteIfRoom(bytes, std::move(on_written));
  }
  const EventEngine::ResolvedAddress& GetPeerAddress() const override {
    return peer_;
  }
  const EventEngine::ResolvedAddress& GetLocalAddress() const override {
    return local_;
  }
  std::shared_ptr<TelemetryInfo> GetTelemetryInfo() const override {
    return nullptr;
  }

 private:
  const std::shared_ptr<Pipe> in_;
  const std::shared_ptr<Pipe> out_;
  const EventEngine::ResolvedAddress local_;
  const EventEngine::ResolvedAddress peer_;
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_EVENT_ENGINE_FAKE_TCP_H_
