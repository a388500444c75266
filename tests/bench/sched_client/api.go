package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	registerKey = "hami.io/node-nvidia-register"
	lockKey     = "hami.io/mutex.lock"
	namespace   = "default"
	benchLabel  = "sched-client"
)

func nodeName(i int) string      { return fmt.Sprintf("gpu-node-%05d", i) }
func gpuUUID(node, g int) string { return fmt.Sprintf("GPU-%08x-0000-4000-8000-%012x", node, g) }

// loopback refuses any address that isn't this machine's own.
func loopback(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("%s is not a loopback address", raw)
	}
	return u, nil
}

// api is a small client of kube-apiserver.
type api struct {
	base string
	http *http.Client
}

func newAPI(o *options) (*api, error) {
	u, err := loopback(o.api)
	if err != nil {
		return nil, err
	}
	conf := &tls.Config{RootCAs: x509.NewCertPool()}
	if u.Scheme == "https" {
		pem, err := os.ReadFile(o.ca)
		if err != nil {
			return nil, err
		}
		conf.RootCAs.AppendCertsFromPEM(pem)
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			return nil, err
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	tr := &http.Transport{TLSClientConfig: conf, MaxIdleConnsPerHost: 16}
	return &api{strings.TrimSuffix(o.api, "/"), &http.Client{Transport: tr, Timeout: 2 * time.Minute}}, nil
}

func (a *api) do(method, path, contentType string, body any) ([]byte, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(method, a.base+path, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("User-Agent", "sched-client")
	res, err := a.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s %.300s", method, path, res.Status, out)
	}
	return out, err
}

type m = map[string]any

func (a *api) create(path string, obj m) ([]byte, error) {
	return a.do("POST", path, "application/json", obj)
}

// createNode makes a node as a kubelet and HAMi's device plugin would leave it; late: as an agent that binds late does.
func (a *api) createNode(i, gpus, images int, late bool) error {
	name := nodeName(i)
	var dev []m
	for g := 0; g < gpus; g++ {
		card := m{"id": gpuUUID(i, g), "index": g, "count": 10, "devmem": 81920, "devcore": 100,
			"type": "NVIDIA A100-SXM4-80GB", "numa": g * 2 / gpus, "mode": "hami-core", "health": true}
		if late {
			card["custominfo"] = m{"binding": "late"}
		}
		dev = append(dev, card)
	}
	text, err := json.Marshal(dev)
	if err != nil {
		return err
	}
	labels := m{benchLabel: "node", "gpu": "on", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
	for l := 0; l < 12; l++ {
		labels[fmt.Sprintf("example.com/label-%d", l)] = fmt.Sprintf("value-%d-%d", l, i%7)
	}
	var imgs, conds []m
	for g := 0; g < images; g++ {
		imgs = append(imgs, m{"names": []string{fmt.Sprintf("registry.example.com/team/image-%d@sha256:%064x", g, g), fmt.Sprintf("registry.example.com/team/image-%d:v1.%d", g, g)}, "sizeBytes": 100000000 + g})
	}
	now := time.Now().UTC().Format(time.RFC3339)
	for _, t := range []string{"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"} {
		conds = append(conds, m{"type": t, "status": map[bool]string{true: "True", false: "False"}[t == "Ready"], "lastHeartbeatTime": now, "lastTransitionTime": now, "reason": "Kubelet" + t, "message": "state of " + t})
	}
	res := m{"cpu": "128", "memory": "1024Gi", "pods": "110", "ephemeral-storage": "900Gi", "nvidia.com/gpu": fmt.Sprint(gpus * 10)}
	_, err = a.create("/api/v1/nodes", m{"apiVersion": "v1", "kind": "Node",
		"metadata": m{"name": name, "labels": labels, "annotations": m{registerKey: string(text), "node.alpha.kubernetes.io/ttl": "0"}},
		"spec":     m{"podCIDR": fmt.Sprintf("10.%d.%d.0/24", i/256, i%256)},
		"status": m{"capacity": res, "allocatable": res, "conditions": conds, "images": imgs,
			"addresses": []m{{"type": "InternalIP", "address": fmt.Sprintf("10.250.%d.%d", i/256, i%256)}, {"type": "Hostname", "address": name}},
			"nodeInfo":  m{"architecture": "amd64", "bootID": "b", "containerRuntimeVersion": "containerd://1.7.0", "kernelVersion": "6.1.0", "kubeProxyVersion": "v1.34.0", "kubeletVersion": "v1.34.0", "machineID": "m", "operatingSystem": "linux", "osImage": "Linux", "systemUUID": "s"}}})
	return err
}

func podObject(name string) m {
	lim := m{"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000", "nvidia.com/gpucores": "1"}
	return m{"apiVersion": "v1", "kind": "Pod", "metadata": m{"name": name, "labels": m{benchLabel: "pod", "app": "bench"}, "annotations": m{}},
		"spec": m{"schedulerName": "hami-scheduler", "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": false,
			"containers": []m{{"name": "c", "image": "registry.example.com/team/train:v1", "command": []string{"train", "--steps", "100"},
				"env": []m{{"name": "A", "value": "1"}, {"name": "B", "value": "2"}}, "resources": m{"limits": lim}}}}}
}

// createPendingPod returns the pod as stored, which is what kube-scheduler sends to an extender.
func (a *api) createPendingPod(name string) ([]byte, error) {
	return a.create("/api/v1/namespaces/"+namespace+"/pods", podObject(name))
}

// createHeldPod makes a bound pod that holds a share, spread evenly over all GPUs.
func (a *api) createHeldPod(i, nodes, gpus int) error {
	n, g := i%nodes, i/nodes%gpus
	p := podObject(fmt.Sprintf("held-%d", i))
	share := gpuUUID(n, g) + ",NVIDIA,1000,1:;"
	meta := p["metadata"].(m)
	meta["annotations"] = m{"hami.io/vgpu-node": nodeName(n), "hami.io/vgpu-time": "1787293239", "hami.io/bind-phase": "success", "hami.io/bind-time": "1787293240",
		"hami.io/vgpu-devices-allocated": share, "hami.io/vgpu-devices-to-allocate": ";"}
	meta["labels"].(m)["hami.io/vgpu-node"] = nodeName(n)
	p["spec"].(m)["nodeName"] = nodeName(n)
	_, err := a.create("/api/v1/namespaces/"+namespace+"/pods", p)
	return err
}

// checkShare fails unless the extender's answer is also written on the pod: the node, and one GPU of it.
// HAMi writes both, and a label, at /filter; bound: they come with the Binding, and nothing reads the label.
func (a *api) checkShare(pod, node string, bound bool) error {
	b, err := a.do("GET", "/api/v1/namespaces/"+namespace+"/pods/"+pod, "application/json", nil)
	if err != nil {
		return err
	}
	var p struct {
		Metadata struct{ Annotations, Labels map[string]string }
		Spec     struct{ NodeName string }
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	var n, g int
	share := p.Metadata.Annotations["hami.io/vgpu-devices-allocated"]
	if _, err := fmt.Sscanf(share, "GPU-%08x-0000-4000-8000-%012x,NVIDIA,1000,1:;", &n, &g); err != nil {
		return fmt.Errorf("pod %s: share %q: %w", pod, share, err)
	}
	there := p.Metadata.Labels["hami.io/vgpu-node"]
	if bound {
		there = p.Spec.NodeName
	}
	if nodeName(n) != node || p.Metadata.Annotations["hami.io/vgpu-node"] != node || there != node ||
		p.Metadata.Annotations["hami.io/vgpu-devices-to-allocate"] != share {
		return fmt.Errorf("pod %s: answer %s, annotations %v", pod, node, p.Metadata.Annotations)
	}
	return nil
}

func (a *api) unlock(node string) error {
	_, err := a.do("PATCH", "/api/v1/nodes/"+node, "application/merge-patch+json", m{"metadata": m{"annotations": m{lockKey: nil}}})
	return err
}

// clear removes what this program made.
func (a *api) clear() error {
	now := m{"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
	if _, err := a.do("DELETE", "/api/v1/namespaces/"+namespace+"/pods?labelSelector="+benchLabel, "application/json", now); err != nil {
		return err
	}
	_, err := a.do("DELETE", "/api/v1/nodes?labelSelector="+benchLabel, "application/json", now)
	return err
}

// parallel calls f(0..n-1) from eight goroutines and returns the first error.
func parallel(n int, f func(int) error) error {
	var wg sync.WaitGroup
	next, errs := make(chan int), make(chan error, 8)
	for w := 0; w < 8; w++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range next {
				if err := f(i); err != nil {
					select {
					case errs <- err:
					default:
					}
				}
			}
		}()
	}
	for i := 0; i < n; i++ {
		next <- i
	}
	close(next)
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}
