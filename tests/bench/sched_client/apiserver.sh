#!/bin/bash
# apiserver.sh up|down: an etcd and a kube-apiserver alone, on loopback, with an audit log of the user "peer".
# Binaries: $KBIN (default: those of tests/e2e/cluster). State: $BENCH_DIR, which down empties.
set -eu
D=${BENCH_DIR:?a folder for its state}
B=${KBIN:-${CLUSTER_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/hami-cluster}/bin}
api=${BENCH_API_PORT:-26443} etcd=${BENCH_ETCD_PORT:-22379}

stop() { # NAME: ends what "up" started, if it is still that program
	local p
	p=$(cat "$D/$1.pid" 2>/dev/null) || return 0
	[ "$(cat "/proc/$p/comm" 2>/dev/null)" = "$1" ] || return 0
	kill "$p"
	for _ in $(seq 50); do [ "$(cat "/proc/$p/comm" 2>/dev/null)" = "$1" ] || return 0; sleep 0.1; done
	kill -KILL "$p"
}
certs() {
	mkdir -p "$D/pki"
	cd "$D/pki"
	openssl ecparam -name prime256v1 -genkey -noout -out ca.key
	openssl req -x509 -new -key ca.key -subj /CN=bench-ca -days 30 -out ca.crt \
		-addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign 2>/dev/null
	sign apiserver /CN=kube-apiserver serverAuth IP:127.0.0.1
	sign admin /O=system:masters/CN=admin clientAuth
	sign peer /O=system:masters/CN=peer clientAuth
	openssl genrsa -out sa.key 2048 2>/dev/null
	openssl rsa -in sa.key -pubout -out sa.pub 2>/dev/null
	for u in admin peer; do
		cat >$u.conf <<-K
		apiVersion: v1
		kind: Config
		clusters: [{name: c, cluster: {server: "https://127.0.0.1:$api", certificate-authority: $D/pki/ca.crt}}]
		users: [{name: u, user: {client-certificate: $D/pki/$u.crt, client-key: $D/pki/$u.key}}]
		contexts: [{name: x, context: {cluster: c, user: u}}]
		current-context: x
		K
	done
}
sign() { # NAME SUBJECT USAGE [SAN]
	openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"
	openssl req -new -key "$1.key" -subj "$2" -out "$1.csr" 2>/dev/null
	{
		echo keyUsage=critical,digitalSignature
		echo "extendedKeyUsage=$3"
		[ -z "${4:-}" ] || echo "subjectAltName=$4"
	} >"$1.ext"
	openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -extfile "$1.ext" -out "$1.crt" 2>/dev/null
}
up() {
	down
	mkdir -p "$D"
	(certs)
	cat >"$D/audit.yaml" <<-A
	apiVersion: audit.k8s.io/v1
	kind: Policy
	omitStages: [RequestReceived, ResponseStarted]
	rules: [{level: Metadata, users: [peer]}, {level: None}]
	A
	"$B/etcd" --data-dir "$D/etcd" --unsafe-no-fsync --listen-client-urls "http://127.0.0.1:$etcd" --advertise-client-urls "http://127.0.0.1:$etcd" \
		--listen-peer-urls http://127.0.0.1:0 --quota-backend-bytes=4294967296 >"$D/etcd.log" 2>&1 </dev/null &
	echo $! >"$D/etcd.pid"
	"$B/kube-apiserver" --etcd-servers="http://127.0.0.1:$etcd" --bind-address=127.0.0.1 --advertise-address=127.0.0.1 --secure-port="$api" \
		--tls-cert-file="$D/pki/apiserver.crt" --tls-private-key-file="$D/pki/apiserver.key" --client-ca-file="$D/pki/ca.crt" --cert-dir="$D/pki" \
		--authorization-mode=RBAC --disable-admission-plugins=ServiceAccount,TaintNodesByCondition --allow-privileged=true --endpoint-reconciler-type=none \
		--service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$D/pki/sa.pub" --service-account-signing-key-file="$D/pki/sa.key" \
		--service-cluster-ip-range=10.96.0.0/24 --audit-policy-file="$D/audit.yaml" --audit-log-path="$D/audit.log" --audit-log-maxsize=2000 \
		>"$D/kube-apiserver.log" 2>&1 </dev/null &
	echo $! >"$D/kube-apiserver.pid"
	for _ in $(seq 200); do
		if "$B/kubectl" --kubeconfig "$D/pki/admin.conf" get --raw /readyz >/dev/null 2>&1; then
			echo "KUBECONFIG=$D/pki/peer.conf  -api https://127.0.0.1:$api -ca $D/pki/ca.crt -cert $D/pki/admin.crt -key $D/pki/admin.key -audit $D/audit.log"
			return 0
		fi
		sleep 0.3
	done
	echo "kube-apiserver is not ready, see $D/kube-apiserver.log" >&2
	return 1
}
down() {
	stop kube-apiserver
	stop etcd
	rm -rf "${D:?}/etcd" "${D:?}/pki"
	rm -f "$D"/{etcd,kube-apiserver}.{pid,log} "$D/audit.log" "$D/audit.yaml"
	rmdir "$D" 2>/dev/null || true
}
case ${1:-} in up) up ;; down) down ;; *) echo "usage: apiserver.sh up|down" >&2; exit 2 ;; esac
