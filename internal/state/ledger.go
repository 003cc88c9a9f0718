package state

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// wholeGPU is a device in thousandths.
const wholeGPU = 1000

// ledger keeps what the tasks of each container instance hold. It refuses a transaction after which a GPU would be
// promised twice, a broken GPU would be promised at all, or an instance would owe more than it has. It has the last
// word: placement plans, the ledger checks, and neither relies on the other.
type ledger struct {
	accounts map[string]*account // by container instance ARN
	touched  map[string][]string // accounts that the running transaction drew on, with the GPUs that it drew
}

// account is one instance's books.
type account struct {
	instance *ContainerInstance // nil while tasks name an unknown instance
	cpu      int64
	memory   int64
	ports    map[portKey]int // how many tasks hold each port
	gpus     map[string]int  // thousandths held, by device
}

type portKey struct {
	udp  bool
	port uint16
}

func newLedger() *ledger {
	return &ledger{accounts: map[string]*account{}, touched: map[string][]string{}}
}

// Change implements store.Observer.
func (l *ledger) Change(before, after any) {
	switch row := pick(before, after).(type) {
	case *Task:
		l.post(asTask(before), -1)
		l.post(asTask(after), 1)
		if draws(asTask(before), asTask(after)) {
			arn := *row.ContainerInstanceArn
			l.touched[arn] = append(l.touched[arn], drawn(asTask(before), asTask(after))...)
		}
	case *ContainerInstance:
		arn := aws.ToString(row.ContainerInstanceArn)
		instance, _ := after.(*ContainerInstance)
		l.account(arn).instance = instance
		l.drop(arn)
	}
}

// post adds (sign 1) or subtracts (sign -1) what a task holds.
func (l *ledger) post(t *Task, sign int) {
	if t == nil || !t.Holds() {
		return
	}
	arn := *t.ContainerInstanceArn
	a := l.account(arn)
	a.cpu += int64(sign) * t.Reserved.CPU
	a.memory += int64(sign) * t.Reserved.MemoryMiB
	for _, p := range t.Reserved.PortsTCP {
		add(a.ports, portKey{false, p}, sign)
	}
	for _, p := range t.Reserved.PortsUDP {
		add(a.ports, portKey{true, p}, sign)
	}
	for _, g := range t.GPUs {
		add(a.gpus, g.ID, sign*g.Milli)
	}
	l.drop(arn)
}

// draws reports whether a change makes a task hold something that it didn't hold before.
func draws(before, after *Task) bool {
	if after == nil || !after.Holds() {
		return false
	}
	return before == nil || !before.Holds() || *before.ContainerInstanceArn != *after.ContainerInstanceArn ||
		!reflect.DeepEqual(before.Reserved, after.Reserved) || !slices.Equal(before.GPUs, after.GPUs)
}

// drawn lists the GPUs that a change makes a task hold anew. It lists none for a task that is to stop: it had its GPUs
// before they broke.
func drawn(before, after *Task) []string {
	var out []string
	if aws.ToString(after.DesiredStatus) == "STOPPED" {
		return nil
	}
	for _, g := range after.GPUs {
		if before == nil || !before.Holds() || !slices.Contains(before.GPUs, g) {
			out = append(out, g.ID)
		}
	}
	return out
}

// Check refuses what must never happen. It looks only at instances that the transaction drew on. If an instance shrinks
// below what it owes (a device broke), its tasks aren't to blame.
func (l *ledger) Check() error {
	defer l.Undone()
	for arn, gpus := range l.touched {
		a, ok := l.accounts[arn]
		if !ok {
			continue
		}
		if err := a.check(gpus); err != nil {
			return fmt.Errorf("container instance %s: %w", arn, err)
		}
	}
	return nil
}

// Undone forgets what the transaction drew.
func (l *ledger) Undone() { clear(l.touched) }

// Replayed implements store.Invariant. An instance may owe more than it has: it has shrunk since.
func (l *ledger) Replayed() error {
	l.Undone()
	for arn, a := range l.accounts {
		if err := a.checkShared(); err != nil {
			return fmt.Errorf("container instance %s: %w", arn, err)
		}
	}
	return nil
}

// checkShared refuses what two tasks would hold.
func (a *account) checkShared() error {
	for port, n := range a.ports {
		if n > 1 {
			return fmt.Errorf("port %d would be held by %d tasks", port.port, n)
		}
	}
	for id, milli := range a.gpus {
		if milli > wholeGPU {
			return fmt.Errorf("GPU %s would be given out %d/1000 times", id, milli)
		}
	}
	return nil
}

func (a *account) check(drawn []string) error {
	if err := a.checkShared(); err != nil || a.instance == nil {
		return err
	}
	for _, g := range a.instance.GPUs {
		if g.Fault != nil && slices.Contains(drawn, g.ID) {
			return fmt.Errorf("GPU %s would be given out with a fault: %s", g.ID, g.Fault.Reason)
		}
	}
	if have := a.instance.Capacity.CPU; a.cpu > have {
		return fmt.Errorf("%d CPU units would be reserved of %d", a.cpu, have)
	}
	if have := a.instance.Capacity.MemoryMiB; a.memory > have {
		return fmt.Errorf("%d MiB would be reserved of %d", a.memory, have)
	}
	return nil
}

func (l *ledger) account(arn string) *account {
	a, ok := l.accounts[arn]
	if !ok {
		a = &account{ports: map[portKey]int{}, gpus: map[string]int{}}
		l.accounts[arn] = a
	}
	return a
}

// drop removes an account when it is empty.
func (l *ledger) drop(arn string) {
	a := l.accounts[arn]
	if a.instance == nil && a.cpu == 0 && a.memory == 0 && len(a.ports) == 0 && len(a.gpus) == 0 {
		delete(l.accounts, arn)
	}
}

func add[K comparable](m map[K]int, k K, n int) {
	if m[k] += n; m[k] == 0 {
		delete(m, k)
	}
}

func pick(before, after any) any {
	if after != nil {
		return after
	}
	return before
}

func asTask(row any) *Task {
	t, _ := row.(*Task)
	return t
}
