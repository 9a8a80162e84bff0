#include "transport/grpc/path_poller.h"

#include <utility>

#include "transport/grpc/transport.h"

namespace penstock {
namespace core {

// Keeps the endpoint for HasInput(), and the transport while one polls.
class PathPoller::Polled : public progress::Pollable {
 public:
  Polled(Transport* transport, std::shared_ptr<fabric::Endpoint> path)
      : transport_(transport), path_(std::move(path)) {
    transport_->Ref();
  }
  ~Polled() override { transport_->Unref(); }

  bool Poll() override { return transport_->PollPath(); }
  bool HasInput() const override { return path_->HasInput(); }
  void SetArmed(bool armed) override { path_->SetArmed(armed); }

 private:
  Transport* const transport_;
  const std::shared_ptr<fabric::Endpoint> path_;
};

bool PathPoller::Watch(std::shared_ptr<fabric::Endpoint> path) {
  if (path == path_) return false;
  if (path_ != nullptr) progress::PollSet::Get()->Remove(slot_);
  path_ = std::move(path);
  if (path_ == nullptr) return false;
  slot_ = progress::PollSet::Get()->Add(
      std::make_shared<Polled>(transport_, path_));
  return path_->HasInput();
}

}  // namespace core
}  // namespace penstock
