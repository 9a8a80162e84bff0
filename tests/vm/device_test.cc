// Tests our assumptions about the devices of tools/rdma-vm, with libibverbs
// only. A failure shows a change of the machine, not of Penstock.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/vm/vm_test.h"

namespace penstock {
namespace {

constexpr size_t kRegionBytes = 8192;
constexpr size_t kWindowBytes = 4096;
constexpr uint8_t kPort = 1;
constexpr int kIpv4Gid = 1;  // index 0 is link-local IPv6

// Calls the library function that releases a handle.
template <auto destroy>
struct Destroy {
  template <typename T>
  void operator()(T* handle) const {
    EXPECT_EQ(destroy(handle), 0) << std::strerror(errno);
  }
};

using Context = std::unique_ptr<ibv_context, Destroy<ibv_close_device>>;
using Domain = std::unique_ptr<ibv_pd, Destroy<ibv_dealloc_pd>>;
using Completions = std::unique_ptr<ibv_cq, Destroy<ibv_destroy_cq>>;
using Region = std::unique_ptr<ibv_mr, Destroy<ibv_dereg_mr>>;
using QueuePair = std::unique_ptr<ibv_qp, Destroy<ibv_destroy_qp>>;
using SharedReceive = std::unique_ptr<ibv_srq, Destroy<ibv_destroy_srq>>;
// Deallocates a window. The library's name is a macro for a struct member in
// this release.
int DeallocateWindow(ibv_mw* window) { return ibv_dealloc_mw(window); }
using Window = std::unique_ptr<ibv_mw, Destroy<DeallocateWindow>>;

Context Open(const std::string& name) {
  std::unique_ptr<ibv_device*[], void (*)(ibv_device**)> list(
      ibv_get_device_list(nullptr), ibv_free_device_list);
  for (int i = 0; list != nullptr && list[i] != nullptr; ++i) {
    if (name == ibv_get_device_name(list[i])) {
      return Context(ibv_open_device(list[i]));
    }
  }
  return nullptr;
}

// One end of a connection, with a region to read and write.
class End {
 public:
  explicit End(const std::string& device)
      : context_(Open(device)),
        domain_(ibv_alloc_pd(context_.get())),
        completions_(ibv_create_cq(context_.get(), 16, nullptr, nullptr, 0)),
        memory_(kRegionBytes),
        region_(ibv_reg_mr(domain_.get(), memory_.data(), memory_.size(),
                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                               IBV_ACCESS_MW_BIND)) {
    ibv_qp_init_attr attributes = {};
    attributes.send_cq = attributes.recv_cq = completions_.get();
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {8, 8, 1, 1, 0};
    queue_.reset(ibv_create_qp(domain_.get(), &attributes));
  }

  bool Connect(const End& peer) {
    ibv_qp_attr attributes = {};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = kPort;
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND;
    if (!Modify(attributes,
                IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)) {
      return false;
    }
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = IBV_MTU_1024;
    attributes.dest_qp_num = peer.queue_->qp_num;
    attributes.max_dest_rd_atomic = 1;
    attributes.min_rnr_timer = 12;
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.port_num = kPort;
    attributes.ah_attr.grh.sgid_index = kIpv4Gid;
    attributes.ah_attr.grh.hop_limit = 1;
    if (ibv_query_gid(peer.context_.get(), kPort, kIpv4Gid,
                      &attributes.ah_attr.grh.dgid) != 0 ||
        !Modify(attributes, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                IBV_QP_MIN_RNR_TIMER)) {
      return false;
    }
    attributes.qp_state = IBV_QPS_RTS;
    attributes.timeout = 14;   // 67 ms until it sends again
    attributes.retry_cnt = 6;  // on rxe 7 means for ever
    attributes.rnr_retry = 6;
    attributes.max_rd_atomic = 1;
    return Modify(attributes, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                  IBV_QP_MAX_QP_RD_ATOMIC);
  }

  // Posts one request, and returns its status.
  ibv_wc_status Do(ibv_send_wr request) {
    request.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* refused = nullptr;
    if (ibv_post_send(queue_.get(), &request, &refused) != 0) {
      ADD_FAILURE() << "post send: " << std::strerror(errno);
      return IBV_WC_GENERAL_ERR;
    }
    ibv_wc completion = {};
    // Waits without spinning, because the driver's threads need the processor.
    for (int wait_ms = 0; wait_ms < 10000; ++wait_ms) {
      if (ibv_poll_cq(completions_.get(), 1, &completion) == 1) {
        return completion.status;
      }
      poll(nullptr, 0, 1);
    }
    ADD_FAILURE() << "no completion within 10 s";
    return IBV_WC_GENERAL_ERR;
  }

  // Lets the peer read the first kWindowBytes; returns the key.
  uint32_t Bind(ibv_mw* window) {
    ibv_send_wr request = {};
    request.opcode = IBV_WR_BIND_MW;
    request.bind_mw.mw = window;
    request.bind_mw.rkey = ibv_inc_rkey(window->rkey);
    request.bind_mw.bind_info = {region_.get(),
                                 reinterpret_cast<uint64_t>(memory_.data()),
                                 kWindowBytes, IBV_ACCESS_REMOTE_READ};
    EXPECT_EQ(Do(request), IBV_WC_SUCCESS);
    return request.bind_mw.rkey;
  }

  // Reads one byte of the peer's memory into the beginning of this end's
  // memory.
  ibv_wc_status Read(const End& peer, size_t offset, uint32_t key) {
    ibv_sge here = {reinterpret_cast<uint64_t>(memory_.data()), 1,
                    region_->lkey};
    ibv_send_wr request = {};
    request.opcode = IBV_WR_RDMA_READ;
    request.sg_list = &here;
    request.num_sge = 1;
    request.wr.rdma.remote_addr =
        reinterpret_cast<uint64_t>(peer.memory_.data()) + offset;
    request.wr.rdma.rkey = key;
    return Do(request);
  }

  bool IsComplete() const { return region_ != nullptr && queue_ != nullptr; }
  ibv_pd* domain() const { return domain_.get(); }
  ibv_context* context() const { return context_.get(); }
  std::vector<uint8_t>& memory() { return memory_; }

 private:
  bool Modify(ibv_qp_attr attributes, int mask) {
    return ibv_modify_qp(queue_.get(), &attributes, mask | IBV_QP_STATE) == 0;
  }

  Context context_;
  Domain domain_;
  Completions completions_;
  std::vector<uint8_t> memory_;
  Region region_;
  QueuePair queue_;
};

class DeviceTest : public VmTest {
 protected:
  void SetUp() override {
    VmTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_NE(context_, nullptr) << "no rxe0: " << std::strerror(errno);
    ASSERT_EQ(ibv_query_device(context_.get(), &device_), 0);
  }

  Context context_ = Open("rxe0");
  ibv_device_attr device_ = {};
};

TEST_F(DeviceTest, ItsPortIsActive) {
  ibv_port_attr port = {};
  ASSERT_EQ(ibv_query_port(context_.get(), kPort, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_EQ(port.active_mtu, IBV_MTU_4096);
}

TEST_F(DeviceTest, ItsSecondGidIsIpv4OverRoceVersion2) {
  ibv_gid_entry entry = {};
  ASSERT_EQ(ibv_query_gid_ex(context_.get(), kPort, kIpv4Gid, &entry, 0), 0);
  EXPECT_EQ(entry.gid_type, static_cast<uint32_t>(IBV_GID_TYPE_ROCE_V2));
  const std::array<uint8_t, 16> mapped = {0, 0, 0,    0,    0,  0, 0, 0,
                                          0, 0, 0xff, 0xff, 10, 9, 0, 1};
  EXPECT_EQ(std::memcmp(entry.gid.raw, mapped.data(), mapped.size()), 0);
}

TEST_F(DeviceTest, ItHasWindowsOfType2AndManyReadsAtOnce) {
  EXPECT_TRUE(device_.device_cap_flags &
              (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B));
  EXPECT_EQ(device_.max_qp_rd_atom, 128);
}

TEST_F(DeviceTest, ItSendsUpTo512BytesInlineAndNoMore) {
  End end("rxe0");
  ibv_qp_init_attr attributes = {};
  Completions completions(ibv_create_cq(end.context(), 1, nullptr, nullptr, 0));
  attributes.send_cq = attributes.recv_cq = completions.get();
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {1, 1, 1, 1, 512};
  EXPECT_NE(QueuePair(ibv_create_qp(end.domain(), &attributes)), nullptr);
  attributes.cap = {1, 1, 1, 1, 1024};
  EXPECT_EQ(QueuePair(ibv_create_qp(end.domain(), &attributes)), nullptr);
}

TEST_F(DeviceTest, ItHasSharedReceiveQueuesWith27Pieces) {
  End end("rxe0");
  ibv_srq_init_attr attributes = {nullptr, {16, 27, 0}};
  EXPECT_NE(SharedReceive(ibv_create_srq(end.domain(), &attributes)), nullptr);
}

// The driver of this kernel limits a reader to the region, not to the window.
// Real adapters enforce the window. The check for trustworthy windows must
// refuse this device.
TEST_F(DeviceTest, AReadOutsideAWindowButInsideItsRegionSucceeds) {
  End owner("rxe1"), reader("rxe0");
  ASSERT_TRUE(owner.IsComplete() && reader.IsComplete());
  ASSERT_TRUE(owner.Connect(reader) && reader.Connect(owner));
  Window window(ibv_alloc_mw(owner.domain(), IBV_MW_TYPE_2));
  ASSERT_NE(window, nullptr) << std::strerror(errno);
  const uint32_t key = owner.Bind(window.get());
  owner.memory()[0] = 11;
  owner.memory()[kWindowBytes] = 22;
  EXPECT_EQ(reader.Read(owner, 0, key), IBV_WC_SUCCESS);
  EXPECT_EQ(reader.memory()[0], 11);
  EXPECT_EQ(reader.Read(owner, kWindowBytes, key), IBV_WC_SUCCESS);
  EXPECT_EQ(reader.memory()[0], 22);
  EXPECT_EQ(reader.Read(owner, kRegionBytes, key), IBV_WC_REM_ACCESS_ERR);
}

}  // namespace
}  // namespace penstock
