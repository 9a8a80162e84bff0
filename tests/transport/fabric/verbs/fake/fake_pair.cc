#include "tests/transport/fabric/verbs/fake/fake_pair.h"

#include <arpa/inet.h>
#include <fcntl.h>

#include <utility>

#include "gtest/gtest.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

constexpr uint16_t kPort = 4242;

void SetNonBlocking(int fd) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

}  // namespace

sockaddr_storage AddressOf(const std::string& ip, uint16_t port) {
  sockaddr_storage address = {};
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&address);
  v4->sin_family = AF_INET;
  v4->sin_port = htons(port);
  inet_pton(AF_INET, ip.c_str(), &v4->sin_addr);
  return address;
}

FakePair::FakePair(NetworkOptions network, DeviceOptions device, int cq_entries)
    : verbs(network), cq_entries_(cq_entries) {
  device.name = "client";
  device.addresses = {"10.0.0.1"};
  client.device = verbs.AddDevice(device);
  device.name = "server";
  device.addresses = {"10.0.0.2"};
  server.device = verbs.AddDevice(std::move(device));
  Make(&client);
  Make(&server);
}

void FakePair::Make(FakeSide* side) {
  side->events = verbs.CreateEventChannel();
  SetNonBlocking(side->events->fd);
  side->pd = verbs.AllocPd(side->device);
  side->channel = verbs.CreateCompChannel(side->device);
  SetNonBlocking(side->channel->fd);
  side->cq =
      verbs.CreateCq(side->device, cq_entries_, nullptr, side->channel, 0);
  ibv_srq_init_attr srq = {};
  srq.attr.max_wr = 8;
  srq.attr.max_sge = 2;
  side->srq = verbs.CreateSrq(side->pd, &srq);
  side->mr =
      verbs.RegMr(side->pd, side->memory.data(), side->memory.size(), kAccess);
}

void FakePair::End(FakeSide* side) {
  if (side->id != nullptr) {
    DropQp(side);
    verbs.DestroyId(side->id);
  }
  if (side->mr != nullptr) verbs.DeregMr(side->mr);
  verbs.DestroySrq(side->srq);
  verbs.DestroyCq(side->cq);
  verbs.DestroyCompChannel(side->channel);
  verbs.DeallocPd(side->pd);
}

FakePair::~FakePair() {
  End(&client);
  End(&server);
  if (listener_ != nullptr) verbs.DestroyId(listener_);
  verbs.DestroyEventChannel(client.events);
  verbs.DestroyEventChannel(server.events);
}

void FakePair::DropQp(FakeSide* side) {
  if (side->id != nullptr && side->id->qp != nullptr) verbs.DestroyQp(side->id);
}

void FakePair::CreateQp(FakeSide* side) {
  ibv_qp_init_attr attr = {};
  attr.send_cq = side->cq;
  attr.recv_cq = side->cq;
  attr.srq = side->srq;
  attr.cap.max_send_wr = kSends;
  attr.cap.max_send_sge = 2;
  attr.cap.max_inline_data = 64;
  attr.qp_type = IBV_QPT_RC;
  ASSERT_EQ(verbs.CreateQp(side->id, side->pd, &attr), 0);
}

rdma_conn_param FakePair::Params() {
  rdma_conn_param param = {};
  param.responder_resources = 16;
  param.initiator_depth = 16;
  param.retry_count = 6;
  param.rnr_retry_count = 7;
  return param;
}

void FakePair::Connect(rdma_conn_param param) {
  sockaddr_storage from = AddressOf("10.0.0.1", 0);
  sockaddr_storage to = AddressOf("10.0.0.2", kPort);
  verbs.CreateId(server.events, &listener_, nullptr, RDMA_PS_TCP);
  ASSERT_EQ(verbs.BindAddr(listener_, Generic(&to)), 0);
  ASSERT_EQ(verbs.Listen(listener_, 0), 0);
  verbs.CreateId(client.events, &client.id, nullptr, RDMA_PS_TCP);
  ASSERT_EQ(verbs.ResolveAddr(client.id, Generic(&from), Generic(&to), 1), 0);
  ASSERT_EQ(NextEvent(&client), RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_EQ(verbs.ResolveRoute(client.id, 1), 0);
  ASSERT_EQ(NextEvent(&client), RDMA_CM_EVENT_ROUTE_RESOLVED);
  CreateQp(&client);
  ASSERT_EQ(verbs.Connect(client.id, &param), 0);
  rdma_cm_event* event = nullptr;
  ASSERT_EQ(verbs.GetCmEvent(server.events, &event), 0);
  ASSERT_EQ(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
  server.id = event->id;
  verbs.AckCmEvent(event);
  CreateQp(&server);
  ASSERT_EQ(verbs.Accept(server.id, &param), 0);
  ASSERT_EQ(NextEvent(&client), RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_EQ(NextEvent(&server), RDMA_CM_EVENT_ESTABLISHED);
}

int FakePair::NextEvent(FakeSide* side) {
  rdma_cm_event* event = nullptr;
  if (verbs.GetCmEvent(side->events, &event) != 0) return -1;
  const int type = event->event;
  verbs.AckCmEvent(event);
  return type;
}

ibv_sge FakePair::Part(const FakeSide& side, uint32_t offset, uint32_t length) {
  return {reinterpret_cast<uint64_t>(side.memory.data()) + offset, length,
          side.mr->lkey};
}

int FakePair::Post(FakeSide* side, ibv_wr_opcode opcode, ibv_sge part,
                   uint64_t remote, uint32_t rkey, unsigned flags) {
  ibv_send_wr wr = {};
  wr.wr_id = 5;
  wr.opcode = opcode;
  wr.send_flags = flags;
  wr.sg_list = &part;
  wr.num_sge = 1;
  wr.invalidate_rkey = rkey;
  wr.wr.rdma.remote_addr = remote;
  wr.wr.rdma.rkey = rkey;
  ibv_send_wr* bad = nullptr;
  return verbs.PostSend(side->id->qp, &wr, &bad);
}

int FakePair::PostReceive(FakeSide* side, ibv_sge part, uint64_t wr_id) {
  ibv_recv_wr wr = {};
  wr.wr_id = wr_id;
  wr.sg_list = &part;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  return verbs.PostSrqRecv(side->srq, &wr, &bad);
}

uint32_t FakePair::BindWindow(FakeSide* side, ibv_mw* mw, uint32_t offset,
                              uint32_t length) {
  ibv_send_wr wr = {};
  wr.opcode = IBV_WR_BIND_MW;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.bind_mw.mw = mw;
  wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
  wr.bind_mw.bind_info.mr = side->mr;
  wr.bind_mw.bind_info.addr =
      reinterpret_cast<uint64_t>(side->memory.data()) + offset;
  wr.bind_mw.bind_info.length = length;
  wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(verbs.PostSend(side->id->qp, &wr, &bad), 0);
  return mw->rkey = wr.bind_mw.rkey;
}

std::vector<ibv_wc> FakePair::Poll(FakeSide* side) {
  std::vector<ibv_wc> completions(64);
  const int count = verbs.PollCq(side->cq, 64, completions.data());
  EXPECT_GE(count, 0);
  completions.resize(count < 0 ? 0 : count);
  return completions;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
