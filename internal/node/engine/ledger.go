package engine

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/network"
)

// ledger is the node's own bookkeeping. Whatever the control plane says, a GPU or a port is never in two tasks at once, and no more
// CPU and memory are given out than there are. As with Amazon's agent, a task that doesn't fit waits, and later ones wait behind it.
type ledger struct {
	mu         sync.Mutex
	capacity   need
	used       need
	takenGPUs  map[string]bool
	takenPorts map[hostPort]bool
	holders    map[string]need // by task ARN
	queue      []*waiter
}

// need is what a task takes of the node. A node without a CPU or memory capacity doesn't limit it.
type need struct {
	cpu       int64
	memoryMiB int64
	gpus      []string
	ports     []hostPort
}

type hostPort struct {
	udp    bool
	number int64
}

// waiter is a task in the queue; granted is closed when it gets what it needs.
type waiter struct {
	task    string
	need    need
	granted chan struct{}
}

func newLedger(cpu, memoryMiB int64) *ledger {
	return &ledger{
		capacity: need{cpu: cpu, memoryMiB: memoryMiB}, holders: map[string]need{},
		takenGPUs: map[string]bool{}, takenPorts: map[hostPort]bool{},
	}
}

// ask joins the queue. The channel is closed once the task holds what it needs. release also leaves the queue.
func (l *ledger) ask(task string, n need) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &waiter{task, n, make(chan struct{})}
	if _, has := l.holders[task]; has {
		close(w.granted)
		return w.granted
	}
	l.queue = append(l.queue, w)
	l.grant()
	return w.granted
}

// hold records what a task has had since before the agent started, whether it fits or not.
func (l *ledger) hold(task string, n need) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.take(task, n)
}

// holdFree has the GPUs taken that no task has.
func (l *ledger) holdFree(holder string, gpus []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	free := slices.DeleteFunc(slices.Clone(gpus), func(id string) bool { return l.takenGPUs[id] })
	l.take(holder, need{gpus: free})
}

// release gives back what the task holds.
func (l *ledger) release(task string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = slices.DeleteFunc(l.queue, func(w *waiter) bool { return w.task == task })
	n := l.holders[task]
	delete(l.holders, task)
	l.used.cpu -= n.cpu
	l.used.memoryMiB -= n.memoryMiB
	for _, id := range n.gpus {
		delete(l.takenGPUs, id)
	}
	for _, p := range n.ports {
		delete(l.takenPorts, p)
	}
	l.grant()
}

// grant serves the queue from its head as long as the head fits. The caller holds mu.
func (l *ledger) grant() {
	for len(l.queue) > 0 && l.fits(l.queue[0].need) {
		w := l.queue[0]
		l.queue = l.queue[1:]
		l.take(w.task, w.need)
		close(w.granted)
	}
}

func (l *ledger) take(task string, n need) {
	l.holders[task] = n
	l.used.cpu += n.cpu
	l.used.memoryMiB += n.memoryMiB
	for _, id := range n.gpus {
		l.takenGPUs[id] = true
	}
	for _, p := range n.ports {
		l.takenPorts[p] = true
	}
}

func (l *ledger) fits(n need) bool {
	if l.capacity.cpu > 0 && l.used.cpu+n.cpu > l.capacity.cpu {
		return false
	}
	if l.capacity.memoryMiB > 0 && l.used.memoryMiB+n.memoryMiB > l.capacity.memoryMiB {
		return false
	}
	return !slices.ContainsFunc(n.gpus, func(id string) bool { return l.takenGPUs[id] }) &&
		!slices.ContainsFunc(n.ports, func(p hostPort) bool { return l.takenPorts[p] })
}

// The range of dynamic host ports, as on AWS.
const (
	firstDynamicPort = 49153
	lastDynamicPort  = 65535
)

var errNoPort = errors.New("no dynamic host port is free")

// pick gives the task consecutive dynamic host ports that nobody on the machine uses, and returns the first.
func (l *ledger) pick(task string, udp bool, count int) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	const n = lastDynamicPort - firstDynamicPort + 1
	start := rand.IntN(n) // so that nodes sharing a machine don't all try the same port first
	var run []hostPort
	for i := range n + count - 1 { // a run may begin before the start
		p := hostPort{udp, int64(firstDynamicPort + (start+i)%n)}
		if p.number == firstDynamicPort {
			run = nil
		}
		if l.takenPorts[p] || !isFree(p) {
			run = nil
			continue
		}
		if run = append(run, p); len(run) < count {
			continue
		}
		held := l.holders[task]
		held.ports = append(slices.Clone(held.ports), run...)
		l.holders[task] = held
		for _, p := range run {
			l.takenPorts[p] = true
		}
		return run[0].number, nil
	}
	if count > 1 {
		return 0, fmt.Errorf("no %d consecutive dynamic host ports are free", count)
	}
	return 0, errNoPort
}

// isFree reports whether nobody on the machine uses a port.
func isFree(p hostPort) bool {
	protocol := "tcp"
	if p.udp {
		protocol = "udp"
	}
	return network.Port{HostPort: uint16(p.number), Protocol: protocol}.Free()
}

// needOf returns what a task takes: its own CPU and memory, or else the sum of its containers', as the control plane counts; its GPUs;
// the ports it names and the dynamic ones it already has.
func needOf(r *Record) need {
	var n need
	ports := map[hostPort]bool{}
	for i := range r.Task.Containers {
		c := &r.Task.Containers[i]
		n.cpu += c.CPU
		n.memoryMiB += reservedMemoryMiB(c)
		if r.Task.NetworkMode == "awsvpc" {
			continue // the task has an address of its own
		}
		for _, p := range c.PortMappings {
			ports[hostPort{p.Protocol == "udp", p.HostPort}] = true
		}
		for _, p := range r.Containers[c.Name].Ports {
			ports[hostPort{p.Protocol == "udp", p.Host}] = true
		}
	}
	maps.DeleteFunc(ports, func(p hostPort, _ bool) bool { return p.number == 0 })
	n.ports = slices.Collect(maps.Keys(ports))
	if r.Task.CPU > 0 {
		n.cpu = int64(r.Task.CPU * 1024)
	}
	if r.Task.Memory > 0 {
		n.memoryMiB = r.Task.Memory
	}
	n.gpus = gpusOf(&r.Task)
	return n
}

func reservedMemoryMiB(c *acs.Container) int64 {
	if soft := hostConfig(c).MemoryReservation; soft > 0 {
		return soft / mebibyte
	}
	return c.Memory
}

// gpusOf lists the GPUs pinned to a task.
func gpusOf(t *acs.Task) []string {
	var out []string
	for _, a := range t.Associations {
		if a.Type == "gpu" {
			out = append(out, a.Name)
		}
	}
	return out
}
