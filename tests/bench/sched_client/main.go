// Command sched-client measures a HAMi-compatible scheduler extender against a real kube-apiserver.
// It makes fake GPU nodes and pending pods, starts the extender (the command after "--"), and reports
// start-up time, /filter and /bind latency, memory, CPU time and API calls per pod, a line of JSON each. Loopback only.
// It is the client that HAMi's own scheduler was measured with.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type options struct {
	api, ca, cert, key, ext, audit, user, log string
	nodes, gpus, images, preload, pods, warm  int
	ks, check                                 string
	bind, keep, late                          bool
	timeout                                   time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.api, "api", "https://127.0.0.1:16443", "kube-apiserver")
	flag.StringVar(&o.ca, "ca", "", "CA certificate file")
	flag.StringVar(&o.cert, "cert", "", "client certificate file (an admin, not the extender's user)")
	flag.StringVar(&o.key, "key", "", "client key file")
	flag.StringVar(&o.ext, "ext", "http://127.0.0.1:8080", "the extender's URL")
	flag.StringVar(&o.audit, "audit", "", "apiserver audit log, JSON lines, level Metadata (for counting calls)")
	flag.StringVar(&o.user, "user", "peer", "user name of the extender in the audit log")
	flag.StringVar(&o.log, "log", os.DevNull, "file for the extender's output")
	flag.IntVar(&o.nodes, "nodes", 100, "fake GPU nodes")
	flag.IntVar(&o.gpus, "gpus", 8, "GPUs per node")
	flag.IntVar(&o.images, "images", 20, "entries in status.images of each node (object size)")
	flag.IntVar(&o.preload, "preload", 0, "pods that already hold a share when the extender starts")
	flag.IntVar(&o.pods, "pods", 200, "measured /filter calls, one pod each, for each -k")
	flag.IntVar(&o.warm, "warm", 20, "unmeasured calls before them")
	flag.StringVar(&o.ks, "k", "500,0", "candidate node names per /filter call; 0 = all")
	flag.BoolVar(&o.bind, "bind", false, "after the filter calls, /bind each measured pod and release its node lock")
	flag.StringVar(&o.check, "check", "filter", "where the extender writes a pod's share: filter (HAMi), or bind (with -bind)")
	flag.BoolVar(&o.late, "late", false, "the nodes' agents bind late: no node lock")
	flag.BoolVar(&o.keep, "keep", false, "leave nodes and pods in the API server")
	flag.DurationVar(&o.timeout, "timeout", 10*time.Minute, "limit for registration, and for one call")
	flag.Parse()
	if o.check != "filter" && (o.check != "bind" || !o.bind) {
		fmt.Fprintln(os.Stderr, "sched-client: -check: filter, or bind together with -bind")
		os.Exit(2)
	}
	if err := run(&o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "sched-client:", err)
		os.Exit(1)
	}
}

func run(o *options, cmd []string) error {
	a, err := newAPI(o)
	if err != nil {
		return err
	}
	ext, err := newExtender(o.ext, o.timeout)
	if err != nil {
		return err
	}
	if err := a.clear(); err != nil {
		return err
	}
	if !o.keep {
		defer a.clear()
	}
	names := make([]string, o.nodes)
	for i := range names {
		names[i] = nodeName(i)
	}
	if err := parallel(o.nodes, func(i int) error { return a.createNode(i, o.gpus, o.images, o.late) }); err != nil {
		return err
	}
	if err := parallel(o.preload, func(i int) error { return a.createHeldPod(i, o.nodes, o.gpus) }); err != nil {
		return err
	}

	au := newAudit(o.audit, o.user)
	p, err := startProcess(cmd, o.log)
	if err != nil {
		return err
	}
	defer p.stop()
	t0 := time.Now()
	if err := ext.waitListen(p, o.timeout); err != nil {
		return err
	}
	listen := time.Since(t0)
	known, err := ext.waitRegistered(p, names, o.timeout)
	if err != nil {
		return err
	}
	fields := p.usage()
	fields["listen_s"], fields["nodes"], fields["registered_s"] = listen.Seconds(), known, time.Since(t0).Seconds()
	record("start", fields)
	au.report("start", 0)

	for _, f := range strings.Split(o.ks, ",") {
		k, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil {
			return err
		}
		if k <= 0 || k > o.nodes {
			k = o.nodes
		}
		if err := measure(o, a, ext, au, p, names, k); err != nil {
			return err
		}
	}
	record("end", p.usage())
	return nil
}

// measure makes fresh pods and times one /filter call for each, one after the other, over one connection.
func measure(o *options, a *api, ext *extender, au *audit, p *process, names []string, k int) error {
	rng := rand.New(rand.NewSource(int64(k)))
	n := o.warm + o.pods
	podBody := make([][]byte, n)
	if err := parallel(n, func(i int) (err error) {
		podBody[i], err = a.createPendingPod(fmt.Sprintf("bench-k%d-%d", k, i))
		return err
	}); err != nil {
		return err
	}
	time.Sleep(time.Second) // let the extender's pod watch settle
	var lat []time.Duration
	winners := make([]string, n)
	au.mark()
	var cpu0 time.Duration
	for i := range podBody {
		if i == o.warm {
			time.Sleep(2 * time.Second)
			au.mark()
			cpu0 = p.cpu()
		}
		cand := names
		if k < len(names) {
			at := rng.Intn(len(names))
			cand = append(append([]string{}, names[at:]...), names[:at]...)[:k]
		}
		body := filterArgs(podBody[i], cand)
		t := time.Now()
		w, err := ext.filter(body)
		d := time.Since(t)
		if err != nil {
			return fmt.Errorf("filter %d: %w", i, err)
		}
		if !slices.Contains(cand, w) {
			return fmt.Errorf("filter %d: %s was not a candidate", i, w)
		}
		winners[i] = w
		if i >= o.warm {
			lat = append(lat, d)
		}
	}
	fields := quantiles(lat)
	fields["named"], fields["cpu_ms"] = k, ms(p.cpu()-cpu0)/float64(len(lat))
	fields["request_bytes"] = len(filterArgs(podBody[0], names[:k]))
	record("filter", fields)
	au.report(fmt.Sprintf("filter %d", k), len(lat))
	check := func(i int) error {
		return a.checkShare(fmt.Sprintf("bench-k%d-%d", k, i), winners[i], o.check == "bind")
	}
	if o.check == "filter" {
		if err := parallel(n, check); err != nil {
			return err
		}
	}
	if o.bind {
		if err := measureBind(o, a, ext, au, podBody, winners, k); err != nil {
			return err
		}
	}
	if o.check == "bind" {
		return parallel(len(lat), func(i int) error { return check(o.warm + i) })
	}
	return nil
}

func measureBind(o *options, a *api, ext *extender, au *audit, podBody [][]byte, winners []string, k int) error {
	var lat []time.Duration
	for i := o.warm; i < len(podBody); i++ {
		body, err := bindArgs(podBody[i], winners[i])
		if err != nil {
			return err
		}
		t := time.Now()
		if err := ext.bind(body); err != nil {
			return fmt.Errorf("bind %d on %s: %w", i, winners[i], err)
		}
		lat = append(lat, time.Since(t))
		if !o.late {
			if err := a.unlock(winners[i]); err != nil { // what the device plugin does after Allocate
				return err
			}
		}
	}
	fields := quantiles(lat)
	fields["named"] = k
	record("bind", fields)
	au.report(fmt.Sprintf("bind %d", k), len(lat))
	return nil
}

// process is the extender under test.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

func startProcess(argv []string, logFile string) (*process, error) {
	if len(argv) == 0 {
		return nil, fmt.Errorf("no command after --")
	}
	out, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	c := exec.Command(argv[0], argv[1:]...)
	c.Stdout, c.Stderr = out, out
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: c, done: make(chan struct{})}
	go func() { c.Wait(); close(p.done) }()
	return p, nil
}

func (p *process) alive() error {
	select {
	case <-p.done:
		return fmt.Errorf("the extender ended: %v", p.cmd.ProcessState)
	default:
		return nil
	}
}

func (p *process) stop() {
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
		p.cmd.Process.Kill()
		<-p.done
	}
}

func (p *process) status(key string) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	for _, l := range bytes.Split(b, []byte("\n")) {
		if f := strings.Fields(string(l)); len(f) > 1 && f[0] == key+":" {
			return f[1]
		}
	}
	return "0"
}

// cpu is what all threads so far took: the ones that run, to the nanosecond.
func (p *process) cpu() time.Duration {
	var sum time.Duration
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	for _, file := range files {
		b, _ := os.ReadFile(file)
		if f := strings.Fields(string(b)); len(f) > 0 {
			ns, _ := strconv.ParseInt(f[0], 10, 64)
			sum += time.Duration(ns)
		}
	}
	return sum
}

func (p *process) usage() m {
	rss, _ := strconv.Atoi(p.status("VmRSS"))
	hwm, _ := strconv.Atoi(p.status("VmHWM"))
	return m{"rss_mib": rss / 1024, "rss_peak_mib": hwm / 1024, "cpu_s": p.cpu().Seconds()}
}
