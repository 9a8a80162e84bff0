#include "transport/session/admission.h"

namespace penstock {
namespace session {

void Admission::Open(Stream* stream) {
  stream->open = true;
  stream->blocked = false;
  ++open_;
}

void Admission::OpenOrBlock(uint32_t id, Stream* stream) {
  if (stream->open || stream->blocked) return;
  if (!full()) return Open(stream);
  stream->blocked = true;
  blocked_.push_back(id);
}

void Admission::Close(Stream* stream) {
  if (stream->open) --open_;
  stream->open = false;
}

bool Admission::TakeBlocked(uint32_t* id) {
  if (blocked_.empty() || full()) return false;
  *id = blocked_.front();
  blocked_.pop_front();
  return true;
}

}  // namespace session
}  // namespace penstock
