// Simulates queue pairs without a connection manager.

#include <cerrno>

#include "tests/transport/fabric/verbs/fake/fake_queue_pair.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// The attributes that the transition to INIT needs for a reliable connection
// (IBTA 11.2.5.2). The other transitions follow.
constexpr int kToInit =
    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kToRtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kToRts = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
                       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                       IBV_QP_MAX_QP_RD_ATOMIC;
constexpr uint32_t kPsnBits = 0xffffff;

}  // namespace

int FakeQueuePairs::CreateRaw(ibv_pd* pd, ibv_qp_init_attr* attr,
                              FakeQp** made) {
  const int error_number = Create(pd, attr, made);
  if (error_number != 0) return error_number;
  (*made)->is_raw = true;
  (*made)->state = IBV_QPS_RESET;
  return 0;
}

int FakeQueuePairs::DestroyRaw(ibv_qp* qp) {
  if (!ledger_->IsAlive("ibv_qp", qp)) return EINVAL;
  Destroy(static_cast<FakeQp*>(qp));
  return 0;
}

int FakeQueuePairs::ModifyRaw(FakeQp* qp, const ibv_qp_attr& attr, int mask) {
  const FakeDevice& device = *FakeDevices::Of(qp->context);
  if (device.removed) return EIO;
  if ((mask & IBV_QP_STATE) == 0) return EINVAL;
  if (attr.qp_state == IBV_QPS_INIT) {
    if (qp->state != IBV_QPS_RESET || mask != kToInit || attr.port_num != 1) {
      return EINVAL;
    }
    qp->access = attr.qp_access_flags;
  } else if (attr.qp_state == IBV_QPS_RTR) {
    if (qp->state != IBV_QPS_INIT || mask != kToRtr || attr.rq_psn > kPsnBits) {
      return EINVAL;
    }
    qp->dest_device = devices_->FindByRoute(device, attr.ah_attr);
    if (qp->dest_device == nullptr) return EINVAL;
    qp->dest_qp_num = attr.dest_qp_num;
    qp->receive_psn = attr.rq_psn;
    qp->max_dest_rd_atomic = attr.max_dest_rd_atomic;
  } else if (attr.qp_state == IBV_QPS_RTS) {
    if (qp->state != IBV_QPS_RTR || mask != kToRts || attr.sq_psn > kPsnBits) {
      return EINVAL;
    }
    qp->send_psn = attr.sq_psn;
    qp->max_rd_atomic = attr.max_rd_atomic;
    qp->rnr_retry = attr.rnr_retry;
  } else {
    return EINVAL;
  }
  qp->state = attr.qp_state;
  return 0;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
