#!/usr/bin/env bash
# Calls between two machines of tools/rdma-vm by current gRPC, over RDMA. Then
# removes the client's device, and expects that no call fails.
#
#   tools/rdma-vm -n 2 two_hosts_vm.sh ROOT PROGRAM
#
# ROOT has the libraries of the program `two_hosts`: a root of tools/distro-test.
set -euo pipefail
: "${RDMA_VM:?wants the devices of tools/rdma-vm}"
readonly root=$1

# Changes only the files of the guest.
cp "$2" "$root/two_hosts"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"

if ((RDMA_VM_RANK == 0)); then
  exec chroot "$root" /two_hosts serve 10.8.0.1
fi
until (: <>/dev/tcp/10.8.0.1/50051) 2>/dev/null; do sleep 1; done
chroot "$root" /two_hosts lose 10.8.0.1 | while read -r line; do
  echo "$line"
  if [[ $line == 'all calls were echoed'* ]]; then
    rdma link delete rxe0
  fi
done
