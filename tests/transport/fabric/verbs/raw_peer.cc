#include "tests/transport/fabric/verbs/raw_peer.h"

#include <fcntl.h>

#include <algorithm>

#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/drain_loop.h"
#include "transport/fabric/verbs/formats/address.h"
#include "transport/fabric/verbs/formats/private_data.h"

namespace penstock {
namespace fabric {
namespace verbs {

RawPeer::RawPeer(FakeVerbs* api, ibv_context* device)
    : api_(api),
      events_(api->CreateEventChannel()),
      pd_(api->AllocPd(device)),
      cq_(api->CreateCq(device, 256, nullptr, nullptr, 0)),
      region_(api->RegMr(pd_, memory_.data(), memory_.size(),
                         IBV_ACCESS_LOCAL_WRITE)) {
  fcntl(events_->fd, F_SETFL, fcntl(events_->fd, F_GETFL) | O_NONBLOCK);
  ibv_srq_init_attr srq = {};
  srq.attr.max_wr = kReceives;
  srq.attr.max_sge = 1;
  srq_ = api_->CreateSrq(pd_, &srq);
  for (uint32_t i = 0; i < kReceives; ++i) {
    ibv_sge piece = {
        reinterpret_cast<uint64_t>(memory_.data() + i * kBufferBytes),
        kBufferBytes, region_->lkey};
    ibv_recv_wr receive = {};
    receive.sg_list = &piece;
    receive.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    EXPECT_EQ(api_->PostSrqRecv(srq_, &receive, &bad), 0);
  }
  EXPECT_EQ(api_->CreateId(events_, &id_, nullptr, RDMA_PS_TCP), 0);
}

RawPeer::~RawPeer() {
  if (id_->qp != nullptr) api_->DestroyQp(id_);
  api_->DestroyId(id_);
  api_->DestroySrq(srq_);
  api_->DeregMr(region_);
  api_->DestroyCq(cq_);
  api_->DeallocPd(pd_);
  api_->DestroyEventChannel(events_);
  DrainLoop();
}

void RawPeer::Prepare(const std::string& offer) {
  Address to = ParseOffer(offer).value()[0];
  Address from = Address::Parse("10.0.0.1", 0).value();
  ASSERT_EQ(api_->ResolveAddr(id_, from.get(), to.get(), 1), 0);
  ASSERT_EQ(NextEvent(), RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_EQ(api_->ResolveRoute(id_, 1), 0);
  ASSERT_EQ(NextEvent(), RDMA_CM_EVENT_ROUTE_RESOLVED);
  ibv_qp_init_attr attr = {};
  attr.send_cq = attr.recv_cq = cq_;
  attr.srq = srq_;
  attr.cap.max_send_wr = 64;
  attr.cap.max_send_sge = 1;
  attr.qp_type = IBV_QPT_RC;
  ASSERT_EQ(api_->CreateQp(id_, pd_, &attr), 0);
}

int RawPeer::Call(const std::string& private_data) {
  rdma_conn_param param = {};
  param.private_data = private_data.data();
  param.private_data_len = static_cast<uint8_t>(private_data.size());
  param.responder_resources = 16;
  param.initiator_depth = 16;
  param.retry_count = 6;
  param.rnr_retry_count = 7;
  EXPECT_EQ(api_->Connect(id_, &param), 0);
  return NextEvent();
}

int RawPeer::CallProperly(const std::string& token) {
  Terms terms;
  terms.receives = 16;
  terms.reads = 16;
  return Call(MakeRequest(terms, token, qp_number()));
}

int RawPeer::NextEvent() {
  rdma_cm_event* event = nullptr;
  DrainLoop();
  if (api_->GetCmEvent(events_, &event) != 0) return -1;
  const int type = event->event;
  const rdma_conn_param& connection = event->param.conn;
  if (type == RDMA_CM_EVENT_ESTABLISHED && connection.private_data != nullptr) {
    private_data_.assign(static_cast<const char*>(connection.private_data),
                         connection.private_data_len);
    peer_qp_number_ = connection.qp_num;
  }
  api_->AckCmEvent(event);
  DrainLoop();
  return type;
}

int RawPeer::Send(const std::string& bytes) {
  std::copy(bytes.begin(), bytes.end(),
            memory_.end() - static_cast<ptrdiff_t>(kBufferBytes));
  ibv_send_wr request = {};
  request.opcode = IBV_WR_SEND;
  return Post(request, static_cast<uint32_t>(bytes.size()));
}

int RawPeer::SendWithInvalidate(const std::string& bytes, uint32_t rkey) {
  std::copy(bytes.begin(), bytes.end(),
            memory_.end() - static_cast<ptrdiff_t>(kBufferBytes));
  ibv_send_wr request = {};
  request.opcode = IBV_WR_SEND_WITH_INV;
  request.invalidate_rkey = rkey;
  return Post(request, static_cast<uint32_t>(bytes.size()));
}

int RawPeer::Read(uint64_t address, uint32_t length, uint32_t rkey) {
  ibv_send_wr request = {};
  request.opcode = IBV_WR_RDMA_READ;
  request.wr.rdma.remote_addr = address;
  request.wr.rdma.rkey = rkey;
  return Post(request, length);
}

int RawPeer::Write(uint64_t address, uint32_t length, uint32_t rkey) {
  ibv_send_wr request = {};
  request.opcode = IBV_WR_RDMA_WRITE;
  request.wr.rdma.remote_addr = address;
  request.wr.rdma.rkey = rkey;
  return Post(request, length);
}

int RawPeer::Post(ibv_send_wr request, uint32_t length) {
  ibv_sge piece = {reinterpret_cast<uint64_t>(memory_.data() + memory_.size()) -
                       kBufferBytes,
                   length, region_->lkey};
  request.wr_id = 1;
  request.send_flags = IBV_SEND_SIGNALED;
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(api_->PostSend(id_->qp, &request, &bad), 0);
  int status = -1;
  ibv_wc completion;
  while (api_->PollCq(cq_, 1, &completion) == 1) {
    if (completion.wr_id == 1) status = completion.status;
  }
  return status;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
