package test

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

var (
	peersNodes = flag.Int("peers.nodes", 3, "nodes that pull an image at once")
	peersMiB   = flag.Int64("peers.mib", 8, "size of each of the image's two layers")
	peersOff   = flag.Bool("peers.off", false, "without --peer-pulls, to compare")
	peersRate  = flag.Int64("peers.rate", 0, "MiB a second that all nodes together get from the registry; 0 is no limit")
)

// uplink is the way from nodes to the control plane. It counts the layers that the registry sends, and may be narrow.
type uplink struct {
	*httputil.ReverseProxy
	mu   sync.Mutex
	sent map[string]int
	free time.Time // when the next bytes may pass
}

func newUplink(t *testing.T, p *Pintle) (u *uplink, endpoint string) {
	t.Helper()
	target, err := url.Parse(p.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	u = &uplink{ReverseProxy: httputil.NewSingleHostReverseProxy(target), sent: map[string]int{}}
	u.ModifyResponse = func(r *http.Response) error {
		if _, digest, found := strings.Cut(r.Request.URL.Path, "/blobs/"); found && r.StatusCode == http.StatusOK && r.ContentLength > *peersMiB<<20 {
			u.mu.Lock()
			u.sent[digest]++
			u.mu.Unlock()
			r.Body = &narrow{r.Body, u}
		}
		return nil
	}
	server := httptest.NewServer(u)
	t.Cleanup(server.Close)
	return u, server.URL
}

// narrow is a body that shares the uplink.
type narrow struct {
	io.ReadCloser
	*uplink
}

func (n *narrow) Read(b []byte) (int, error) {
	got, err := n.ReadCloser.Read(b)
	if *peersRate > 0 {
		n.mu.Lock()
		n.free = time.Unix(0, max(n.free.UnixNano(), time.Now().UnixNano())+int64(got)*int64(time.Second)/(*peersRate<<20))
		until := n.free
		n.mu.Unlock()
		time.Sleep(time.Until(until))
	}
	return got, err
}

// TestPeerPulls: nodes that want an image at once fetch it from each other: the registry sends each layer once. A node that comes later gets it
// from a neighbour, too.
func TestPeerPulls(t *testing.T) {
	t.Parallel()
	p := UpSigned(t, "c5.large")
	u, endpoint := newUplink(t, p)
	p.pushLarge(t, "big:1")
	p.AWS("ecs", "create-cluster", "--cluster-name", "peers")
	p.AWS("ecs", "register-task-definition", "--cli-input-json", fmt.Sprintf(`{"family":"big","networkMode":"none","containerDefinitions":[
		{"name":"main","image":%q,"command":["sh","-c","trap exit TERM; sleep 3600 & wait"],"memory":3000}]}`, imageHost+"big:1"))
	all := 0
	for _, together := range []int{*peersNodes, 1} {
		for range together {
			startPeer(t, p, endpoint)
		}
		var free []string
		Eventually(t, "the nodes connect", func() bool {
			free = strings.Fields(p.AWS("ecs", "list-container-instances", "--cluster", "peers", "--filter", "agentConnected==true and runningTasksCount==0",
				"--query", "containerInstanceArns", "--output", "text"))
			return len(free) == together
		})
		began := time.Now()
		p.AWS(append([]string{"ecs", "start-task", "--cluster", "peers", "--task-definition", "big", "--container-instances"}, free...)...)
		all += together
		Eventually(t, "the tasks run", func() bool {
			return p.AWS("ecs", "describe-clusters", "--clusters", "peers", "--query", "clusters[0].runningTasksCount") == fmt.Sprint(all)
		})
		t.Logf("%d nodes at once: %.1f s until the last task runs", together, time.Since(began).Seconds())
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.sent) != 2 {
		t.Errorf("the registry sent %d large layers, not 2", len(u.sent))
	}
	for layer, times := range u.sent {
		if times != 1 && !*peersOff {
			t.Errorf("%s was sent %d times", layer, times)
		}
	}
}

// pushLarge pushes an image with two large layers.
func (p *Pintle) pushLarge(t *testing.T, name string) {
	t.Helper()
	image := busybox(t)
	for range 2 {
		layer, err := random.Layer(*peersMiB<<20, "application/vnd.oci.image.layer.v1.tar")
		if err != nil {
			t.Fatal(err)
		}
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			t.Fatal(err)
		}
	}
	repository, _, _ := strings.Cut(name, ":")
	p.AWS("ecr", "create-repository", "--repository-name", repository)
	if err := remote.Write(p.registry(name), image, p.login(), remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// TestPrefetch: of two nodes that could take the next task of a service, the one that doesn't get the first one pulls the image all the same.
func TestPrefetch(t *testing.T) {
	t.Parallel()
	p := UpSigned(t, "c5.large")
	p.pushLarge(t, "next:1")
	p.AWS("ecs", "create-cluster", "--cluster-name", "peers")
	var log lines
	for range 2 {
		startAgent(t, p, p.Endpoint, &log, "--prefetch")
	}
	Eventually(t, "the nodes connect", func() bool {
		return p.AWS("ecs", "list-container-instances", "--cluster", "peers", "--filter", "agentConnected==true", "--query", "length(containerInstanceArns)") == "2"
	})
	p.AWS("ecs", "register-task-definition", "--cli-input-json", fmt.Sprintf(`{"family":"next","networkMode":"none","containerDefinitions":[
		{"name":"main","image":%q,"command":["sh","-c","trap exit TERM; sleep 3600 & wait"],"memory":3000}]}`, imageHost+"next:1"))
	p.AWS("ecs", "create-service", "--cluster", "peers", "--service-name", "next", "--task-definition", "next", "--desired-count", "1")
	Eventually(t, "the other node has the image", func() bool { return strings.Contains(log.String(), "prefetched an image") })
	if said := log.String(); !strings.Contains(said, imageHost+"next:1") {
		t.Errorf("the agents say:\n%s", said)
	}
}

// lines is a log that may be read while it's written.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// startPeer starts an agent that reaches the control plane at another address.
func startPeer(t *testing.T, p *Pintle, endpoint string) {
	t.Helper()
	startAgent(t, p, endpoint, testLog{t}, fmt.Sprintf("--peer-pulls=%v", !*peersOff))
}

func startAgent(t *testing.T, p *Pintle, endpoint string, log io.Writer, flags ...string) {
	t.Helper()
	args := append([]string{
		"agent", "--endpoint", endpoint, "--cluster", "peers", "--data", t.TempDir(), "--runtime", "oci", "--instance-type", "c5.large",
		"--metrics=", "--ephemeral",
	}, flags...)
	agent := exec.Command(bin(t, "pintle"), args...)
	agent.Env = p.Env()
	agent.Stderr = log
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		agent.Process.Signal(syscall.SIGINT) //nolint:errcheck // it may have ended
		agent.Wait()                         //nolint:errcheck // it was asked to end
	})
}
