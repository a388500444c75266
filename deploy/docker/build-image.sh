#!/bin/bash
# build-image.sh [--build DIR] [--name NAME:TAG] [OUT.tar]: the image of the agent and the scheduler (HAMi has one for both, too)
# as an OCI archive, without a daemon and without a base image: our programs, a shell, and the libraries that they need, from
# this machine. Needs no root.
#   ctr -n k8s.io images import OUT.tar;  skopeo copy oci-archive:OUT.tar docker://REGISTRY/hami-device-plugin:TAG
# Defaults: the release (build/), localhost/hami-device-plugin:<version>, <build>/hami-device-plugin.tar.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/../.." && pwd)
build=$repo/build
version=$(sed -n 's/^project(hami-vgpu VERSION \([0-9.]*\).*/\1/p' "$repo/CMakeLists.txt")
name=localhost/hami-device-plugin:$version
while [[ ${1:-} == --* ]]; do
	case $1 in
	--build) build=$(cd "$2" && pwd) ;;
	--name) name=$2 ;;
	*) echo "build-image.sh: no such option: $1" >&2; exit 2 ;;
	esac
	shift 2
done
out=${1:-$build/hami-device-plugin.tar}
for f in bin/hami-device-plugin bin/hami-scheduler bin/hami-smi lib/libvgpu.so; do
	[ -e "$build/$f" ] || { echo "build-image.sh: $build/$f is missing; build it first (make)" >&2; exit 1; }
done

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root" # becomes the image's /
mkdir -p "$root"/{bin,etc,tmp,usr,run,var,k8s-vgpu/bin,k8s-vgpu/lib/hami-vgpu}
chmod 1777 "$root/tmp"
ln -s /run "$root/var/run"
ln -s /bin "$root/usr/bin"
echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"

# Programs, and what the loader finds for them here, at the same paths.
add() { # TO PROGRAM...
	local to=$1 f lib
	shift
	for f; do
		install -m 755 "$f" "$root$to/"
		for lib in $(ldd "$f" | grep -oE '/[^ ]+\.so[^ ]*'); do
			[ -e "$root$lib" ] || install -D -m 755 "$(readlink -f "$lib")" "$root$lib"
		done
	done
}
add /bin /bin/dash /bin/cat /bin/ls /bin/sleep
ln -s dash "$root/bin/sh"
add /k8s-vgpu/bin "$build/bin/hami-device-plugin" "$build/bin/hami-scheduler" "$build/bin/hami-smi"
install -m 755 "$here/vgpu-init.sh" "$here/vGPUmonitor" "$root/k8s-vgpu/bin/"
install -m 755 "$build/lib/libvgpu.so" "$root/k8s-vgpu/lib/hami-vgpu/"
# HAMi's names, by which its chart starts them.
ln -s hami-device-plugin "$root/k8s-vgpu/bin/nvidia-device-plugin"
ln -s hami-scheduler "$root/k8s-vgpu/bin/scheduler"

"$here/mkimage.sh" "$root" "$name" "$out" '["/k8s-vgpu/bin/hami-device-plugin"]' \
	'["PATH=/k8s-vgpu/bin:/bin","NVIDIA_VISIBLE_DEVICES=all","NVIDIA_DRIVER_CAPABILITIES=compute,utility","NVIDIA_DISABLE_REQUIRE=true"]'
echo "image $name in $out: $(du -h "$out" | cut -f1)"
