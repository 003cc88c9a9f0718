package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/pintle/pintle/internal/node/network"
	"github.com/pintle/pintle/internal/node/runtime"
)

// Networks gives tasks in mode awsvpc their own networks. The engine can't put a container into an existing namespace, only into another
// container's. So, as with Amazon's agent, an idle container holds each task's namespace, and CNI connects it.
type Networks struct {
	engine *Runtime
	cni    *network.Networks
}

// NewNetworks returns the networks of an engine, which must be on this machine.
func NewNetworks(engine *Runtime, cni *network.Networks) (*Networks, error) {
	if !engine.IsLocal() {
		return nil, errors.New("network mode awsvpc needs a Docker Engine on this machine")
	}
	if goruntime.GOARCH != "amd64" {
		return nil, errors.New("network mode awsvpc on Docker needs an x86-64 machine")
	}
	return &Networks{engine, cni}, nil
}

// holder returns the name of the container that holds a task's network.
func holder(taskID string) string { return "pintle-network-" + taskID }

// Create makes a task's network, unless it exists.
func (n *Networks) Create(ctx context.Context, taskID string) (netns, ip, mac string, err error) {
	c, err := n.hold(ctx, holder(taskID))
	if err != nil {
		return "", "", "", fmt.Errorf("the container that holds the task's network: %w", orUnavailable(err))
	}
	a, err := n.cni.Adopt(ctx, taskID, fmt.Sprintf("/proc/%d/ns/net", c.State.Pid))
	if err != nil {
		return "", "", "", err
	}
	return a.NetNS, a.IP, a.MAC, nameHost(c.HostsPath, a.IP, c.Config.Hostname)
}

// nameHost adds an address and a name, such as the task's own, which the engine doesn't know, to its containers' /etc/hosts, which they share
// with the holder.
func nameHost(path, ip, name string) error {
	line := ip + "\t" + name + "\n"
	b, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(b), line) {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0) // in place, since it's mounted into the containers
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}

// setNames gives the containers of a task's network name servers and names of hosts: they share the holder's files.
func (r *Runtime) setNames(ctx context.Context, spec *runtime.Spec) error {
	if len(spec.DNS)+len(spec.ExtraHosts) == 0 {
		return nil
	}
	name := holder(network.ID(spec.Network.NetNS))
	c, err := r.inspect(ctx, name)
	if err != nil {
		return fmt.Errorf("the container that holds the task's network: %w", orUnavailable(err))
	}
	for _, h := range spec.ExtraHosts {
		name, ip, _ := strings.Cut(h, ":")
		if err := nameHost(c.HostsPath, ip, name); err != nil {
			return err
		}
	}
	return setNameServers(c.ResolvConfPath, spec.DNS)
}

// setNameServers replaces the name servers in a resolv.conf, if there are others.
func setNameServers(path string, servers []string) error {
	if len(servers) == 0 {
		return nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var out strings.Builder
	for _, ip := range servers {
		fmt.Fprintf(&out, "nameserver %s\n", ip)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 0 && f[0] != "nameserver" {
			out.WriteString(strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	if out.String() == string(b) {
		return nil
	}
	return os.WriteFile(path, []byte(out.String()), 0o644) // in place, since it's mounted into the containers
}

// Delete removes a task's network.
func (n *Networks) Delete(ctx context.Context, taskID string) error {
	if err := n.cni.Detach(ctx, taskID); err != nil {
		return err
	}
	_, err := n.engine.api.ContainerRemove(ctx, holder(taskID), client.ContainerRemoveOptions{Force: true})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// hold starts a holder, unless it's running.
func (n *Networks) hold(ctx context.Context, name string) (c container.InspectResponse, err error) {
	if err := n.engine.importPause(ctx); err != nil {
		return c, err
	}
	_, err = n.engine.api.ContainerCreate(ctx, client.ContainerCreateOptions{
		Name:       name,
		Config:     &container.Config{Image: pauseImage, Entrypoint: []string{"/pause"}},
		HostConfig: &container.HostConfig{NetworkMode: "none", RestartPolicy: container.RestartPolicy{Name: "no"}},
	})
	if err != nil && !errdefs.IsConflict(err) { // a conflict means that it exists already
		return c, err
	}
	if _, err := n.engine.api.ContainerStart(ctx, name, client.ContainerStartOptions{}); err != nil {
		return c, err
	}
	if c, err = n.engine.inspect(ctx, name); err == nil && c.State.Pid == 0 {
		err = errors.New("it is not running")
	}
	return c, err
}

const pauseImage = "pintle.local/pause:1"

// importPause gives the engine the holders' image, unless it has it already.
func (r *Runtime) importPause(ctx context.Context) error {
	if _, err := r.api.ImageInspect(ctx, pauseImage); !errdefs.IsNotFound(err) {
		return err
	}
	program, err := pauseProgram()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err = w.WriteHeader(&tar.Header{Name: "pause", Mode: 0o755, Size: int64(len(program))})
	if err == nil {
		_, err = w.Write(program)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	res, err := r.api.ImageImport(ctx, client.ImageImportSource{Source: &b, SourceName: "-"}, pauseImage, client.ImageImportOptions{})
	if err != nil {
		return err
	}
	defer res.Close()
	_, err = io.Copy(io.Discard, res)
	return err
}

// pauseProgram returns a tiny ELF program that waits forever. We build it here because a node may have neither a registry nor a compiler.
func pauseProgram() ([]byte, error) {
	code := []byte{
		0xb8, 0x22, 0x00, 0x00, 0x00, // mov eax, 34: pause(2)
		0x0f, 0x05, // syscall
		0xeb, 0xf7, // jmp to the start
	}
	const at, headers = 0x400000, 64 + 56
	size := uint64(headers + len(code))
	header := elf.Header64{
		Ident:     [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:      uint16(elf.ET_EXEC),
		Machine:   uint16(elf.EM_X86_64),
		Version:   uint32(elf.EV_CURRENT),
		Entry:     at + headers,
		Phoff:     64,
		Ehsize:    64,
		Phentsize: 56,
		Phnum:     1,
		Shentsize: 64,
	}
	segment := elf.Prog64{
		Type:   uint32(elf.PT_LOAD),
		Flags:  uint32(elf.PF_R | elf.PF_X),
		Vaddr:  at,
		Paddr:  at,
		Filesz: size,
		Memsz:  size,
		Align:  0x1000,
	}
	var b bytes.Buffer
	for _, part := range []any{header, segment, code} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// modeOf returns the network mode that puts a container into a task's network.
func modeOf(n runtime.Network) container.NetworkMode {
	return container.NetworkMode("container:" + holder(network.ID(n.NetNS)))
}
