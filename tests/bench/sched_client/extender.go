package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

// extender speaks the kube-scheduler extender protocol over one kept connection.
type extender struct {
	base, host string
	http       *http.Client
}

func newExtender(base string, timeout time.Duration) (*extender, error) {
	u, err := loopback(base)
	if err != nil {
		return nil, err
	}
	tr := &http.Transport{MaxConnsPerHost: 1}
	return &extender{strings.TrimSuffix(base, "/"), u.Host, &http.Client{Transport: tr, Timeout: timeout}}, nil
}

type filterResult struct {
	NodeNames                               []string
	FailedNodes, FailedAndUnresolvableNodes map[string]string
	Error                                   string
}

func (e *extender) post(path string, body []byte, out any) error {
	res, err := e.http.Post(e.base+path, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != 200 {
		return fmt.Errorf("%s: %s %.200s", path, res.Status, b)
	}
	return json.Unmarshal(b, out)
}

func (e *extender) filter(body []byte) (string, error) {
	var r filterResult
	if err := e.post("/filter", body, &r); err != nil {
		return "", err
	}
	if r.Error != "" || len(r.NodeNames) != 1 {
		return "", fmt.Errorf("answer %.300s, %d names, %d failed", r.Error, len(r.NodeNames), len(r.FailedNodes))
	}
	return r.NodeNames[0], nil
}

func (e *extender) bind(body []byte) error {
	var r struct{ Error string }
	if err := e.post("/bind", body, &r); err != nil {
		return err
	}
	if r.Error != "" {
		return fmt.Errorf("%s", r.Error)
	}
	return nil
}

func (e *extender) waitListen(p *process, limit time.Duration) error {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if c, err := net.DialTimeout("tcp", e.host, time.Second); err == nil {
			return c.Close()
		}
		if err := p.alive(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s does not listen", e.host)
}

// waitRegistered asks for a pod that fits nowhere (more memory than any card has) until no
// candidate is refused as unregistered; such a call changes nothing in the extender.
func (e *extender) waitRegistered(p *process, names []string, limit time.Duration) (int, error) {
	pod := podObject("sched-client-probe")
	pod["metadata"].(m)["namespace"] = namespace
	pod["metadata"].(m)["uid"] = "00000000-0000-4000-8000-000000000001"
	pod["spec"].(m)["containers"].([]m)[0]["resources"] = m{"limits": m{"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000000"}}
	b, err := json.Marshal(pod)
	if err != nil {
		return 0, err
	}
	body, known := filterArgs(b, names), 0
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if err := p.alive(); err != nil {
			return known, err
		}
		var r filterResult
		if err := e.post("/filter", body, &r); err != nil {
			continue
		}
		known = 0
		for _, failed := range []map[string]string{r.FailedNodes, r.FailedAndUnresolvableNodes} {
			for _, why := range failed {
				if !strings.Contains(why, "unregistered") {
					known++
				}
			}
		}
		if known == len(names) {
			return known, nil
		}
	}
	return known, fmt.Errorf("only %d of %d nodes registered", known, len(names))
}

func filterArgs(pod []byte, names []string) []byte {
	n, _ := json.Marshal(names)
	return bytes.Join([][]byte{[]byte(`{"Pod":`), pod, []byte(`,"Nodes":null,"NodeNames":`), n, []byte(`}`)}, nil)
}

func bindArgs(pod []byte, node string) ([]byte, error) {
	var p struct {
		Metadata struct{ Name, Namespace, UID string }
	}
	if err := json.Unmarshal(pod, &p); err != nil {
		return nil, err
	}
	return json.Marshal(m{"PodName": p.Metadata.Name, "PodNamespace": p.Metadata.Namespace, "PodUID": p.Metadata.UID, "Node": node})
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// record is one line of the output.
func record(what string, fields m) {
	fields["what"] = what
	line, _ := json.Marshal(fields)
	fmt.Println(string(line))
}

func quantiles(lat []time.Duration) m {
	s := slices.Clone(lat)
	slices.Sort(s)
	at := func(q float64) float64 { return ms(s[min(len(s)-1, int(q*float64(len(s))))]) }
	return m{"n": len(s), "p50_ms": at(0.50), "p90_ms": at(0.90), "p99_ms": at(0.99), "max_ms": ms(s[len(s)-1])}
}

// audit counts the extender's calls in the apiserver's audit log, from the last mark to the end.
type audit struct {
	file, user string
	off        int64
}

func newAudit(file, user string) *audit {
	a := &audit{file: file, user: user}
	a.mark()
	return a
}

func (a *audit) mark() {
	if st, err := os.Stat(a.file); err == nil {
		a.off = st.Size()
	}
}

// report prints what was asked since the mark; pods: of how many.
func (a *audit) report(phase string, pods int) {
	if a.file == "" {
		return
	}
	time.Sleep(3 * time.Second) // late events
	f, err := os.Open(a.file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "audit:", err)
		return
	}
	defer f.Close()
	f.Seek(a.off, io.SeekStart)
	count, total := map[string]int{}, 0
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var ev struct {
			Verb      string
			User      struct{ Username string }
			ObjectRef struct{ Resource, Subresource string }
		}
		if json.Unmarshal(sc.Bytes(), &ev) != nil || ev.User.Username != a.user {
			continue
		}
		what := ev.Verb + " " + ev.ObjectRef.Resource
		if ev.ObjectRef.Subresource != "" {
			what += "/" + ev.ObjectRef.Subresource
		}
		count[what]++
		total++
	}
	fields := m{"phase": phase, "total": total, "calls": count}
	if pods > 0 {
		fields["per_pod"] = float64(total) / float64(pods)
	}
	record("calls", fields)
	a.mark()
}
