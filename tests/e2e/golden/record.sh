#!/bin/bash
# record.sh OUT_DIR: what a real kubelet calls on a device plugin, recorded with the cluster's fake plugin: OUT_DIR gets
# fakeplugin.log (cut into scenarios by "== NAME" lines) and the kubelet's checkpoints. calls.py makes kubelet-calls.json
# of it. Needs the built cluster (tests/e2e/cluster/README.md); runs in a CLUSTER_DIR of its own and wipes it.
set -eu
out=$(mkdir -p "$1" && cd "$1" && pwd)
here=$(cd "$(dirname "$0")/../cluster" && pwd)
built=${BUILT:-${XDG_CACHE_HOME:-$HOME/.cache}/hami-cluster}
export KBIN=${KBIN:-$built/bin}
CLUSTER_DIR=$(mktemp -d /tmp/hkc.XXXX)
export CLUSTER_DIR
cp -rL "$built/images" "$CLUSTER_DIR/images"
# shellcheck source=tests/e2e/cluster/env.sh
. "$here/env.sh"
trap '"$here/down.sh" --wipe; rm -rf "$CLUSTER_DIR"' EXIT

log=$L/fakeplugin.log
scenario() { sleep "${2:-1}"; echo "== $1" >>"$log"; }
calls() { grep -c "$1" "$log" || true; }
# shellcheck disable=SC2317 # run by wait_for
allocatable() { [ "$(k get node $NODE -o 'jsonpath={.status.allocatable.hami\.com/vgpu}')" = 8 ]; }
# shellcheck disable=SC2317
called() { [ "$(calls "$1")" -ge "$2" ]; }
# shellcheck disable=SC2317
running() { [ "$(k get pod "$1" -o 'jsonpath={.status.phase}')" = Running ]; }
keep() { cp "$CLUSTER_DIR/var/kubelet/device-plugins/kubelet_internal_checkpoint" "$out/checkpoint-$1.json"; }

"$here/up.sh"
mkdir -p "$L"
echo "== register" >>"$log"
"$here/fakeplugin.sh" start -unique
wait_for allocatable 30 allocatable
keep empty

scenario one-pod 2
k apply -f - <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: solo}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: c, image: localhost/busybox:1, command: [sleep, "1000"], resources: {limits: {hami.com/vgpu: 1}}}
Y
wait_for solo 60 running solo
keep one-pod

scenario init-sidecar-two 2
k apply -f - <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: many}
spec:
  terminationGracePeriodSeconds: 0
  initContainers:
  - {name: i1, image: localhost/busybox:1, command: ["true"], resources: {limits: {hami.com/vgpu: 2}}}
  - {name: side, image: localhost/busybox:1, restartPolicy: Always, command: [sleep, "1000"], resources: {limits: {hami.com/vgpu: 1}}}
  - {name: i2, image: localhost/busybox:1, command: ["true"], resources: {limits: {hami.com/vgpu: 1}}}
  containers:
  - {name: a, image: localhost/busybox:1, command: [sleep, "1000"], resources: {limits: {hami.com/vgpu: 1}}}
  - {name: b, image: localhost/busybox:1, command: [sleep, "1000"], resources: {limits: {hami.com/vgpu: 1}}}
Y
wait_for many 60 running many
keep init-sidecar-two

scenario container-restart 2
n=$(calls 'PreStart#.*answers')
id=$(k get pod solo -o 'jsonpath={.status.containerStatuses[0].containerID}')
"$here/in" "$B/ctr" tasks kill -s KILL "${id#containerd://}"
wait_for "the restart" 60 called 'PreStart#.*answers' $((n + 1))

scenario kubelet-restart 3
n=$(calls 'Register returned')
"$here/down.sh" --only kubelet
"$here/up.sh" --only kubelet
wait_for "a registration" 60 called 'Register returned.*<nil>' $((n + 1))
wait_for allocatable 60 allocatable

scenario pod-after-restart 3
k apply -f - <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: late}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: c, image: localhost/busybox:1, command: [sleep, "1000"], resources: {limits: {hami.com/vgpu: 2}}}
Y
wait_for late 60 running late
keep pod-after-restart

scenario prestart-error 2
"$here/fakeplugin.sh" ctl '{"preStartError":"not today"}'
k apply -f - <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: erring}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: c, image: localhost/busybox:1, command: [sleep, "1000"], resources: {limits: {hami.com/vgpu: 1}}}
Y
n=$(calls 'PreStart#.*answers an error')
wait_for "two tries" 60 called 'PreStart#.*answers an error' $((n + 2))
"$here/fakeplugin.sh" ctl '{}'
wait_for erring 60 running erring
sleep 1
cp "$log" "$out/fakeplugin.log"
echo "recorded: $(calls .) lines"
