#!/bin/bash
# kube-scheduler.sh VERSION: that kube-scheduler (v1.22.17) into $CLUSTER_DIR/schedulers/VERSION, once; prints its path.
# Built by its module's own go.mod, in which the modules of Kubernetes' own tree are those published with it; by Go 1.21, the
# oldest that the module proxy has, where it asks for no newer one.
set -eu
. "$(dirname "$(readlink -f "$0")")/env.sh"
v=${1:-}
[[ $v =~ ^v1\.([0-9]+)\.[0-9]+$ ]] || { echo "kube-scheduler.sh: '$v' is no version like v1.22.17" >&2; exit 2; }
minor=${BASH_REMATCH[1]} out=$C/schedulers/$v
mkdir -p "$out"
exec 9>"$out/lock"
flock 9
if [ ! -x "$out/kube-scheduler" ]; then
	export CGO_ENABLED=0 GOTOOLCHAIN=go1.21.13+auto
	dir=$(cd "$out" && go mod download -json "k8s.io/kubernetes@$v" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
	[ -d "$dir" ] || { echo "kube-scheduler.sh: no k8s.io/kubernetes $v" >&2; exit 1; }
	sed -E "s#(k8s\.io/[a-z-]+) => \./staging/.*#\1 => \1 v0.${v#v1.}#" "$dir/go.mod" >"$out/go.mod"
	cat "$dir/go.sum" >"$out/go.sum"
	V=k8s.io/component-base/version.git W=k8s.io/client-go/pkg/version.git # what it says of itself, and to the API server
	(cd "$dir" && GOFLAGS="-mod=mod -modfile=$out/go.mod -trimpath -buildvcs=false" nice -n 10 go build -p 1 -o "$out/.kube-scheduler" \
		-ldflags "-s -w -X ${V}Version=$v -X ${V}Major=1 -X ${V}Minor=$minor -X ${V}TreeState=clean -X ${W}Version=$v" ./cmd/kube-scheduler) >&2
	mv "$out/.kube-scheduler" "$out/kube-scheduler"
fi
echo "$out/kube-scheduler"
