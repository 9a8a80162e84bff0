#include "transport/session/pongs.h"

#include <string>

#include "transport/wire/frame.h"
#include "transport/wire/reader.h"

namespace penstock {
namespace session {

void Pongs::OnPing(uint64_t cookie) {
  if (!holds_ || held_.has_value()) return Send(cookie);
  held_ = cookie;
}

void Pongs::Release() {
  holds_ = false;
  if (!held_.has_value()) return;
  Send(*held_);
  held_.reset();
}

void Pongs::Send(uint64_t cookie) {
  std::string payload;
  wire::AppendNumber<uint64_t>(cookie, &payload);
  writer_->Add(wire::FrameType::kPong, 0, 0, payload);
  path_->RingLifeline();
}

}  // namespace session
}  // namespace penstock
