// Package network gives containers and tasks their own networks. It makes network namespaces, and CNI plugins (the ones that Kubernetes
// uses) connect them to the machine's network. By default they share a bridge; a custom CNI configuration can put them on the LAN, or on
// any network that has a plugin. It needs root.
package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/containernetworking/cni/libcni"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/vishvananda/netlink"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/kernel"
)

// PluginDirs are the directories where Linux distributions install CNI plugins.
var PluginDirs = []string{"/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni"}

// Port publishes a network namespace's port on the machine.
type Port struct {
	HostPort      uint16 `json:"hostPort"`
	ContainerPort uint16 `json:"containerPort"`
	Protocol      string `json:"protocol"` // tcp or udp
}

// Address is a network namespace and its address on its network.
type Address struct {
	NetNS string // path of the namespace
	IP    string
	MAC   string
}

// Networks makes and removes network namespaces. Each has a directory under dir:
//
//	ID/netns         the mounted namespace
//	ID/ports.json    the ports that it publishes
//	ID/address.json  its address, written once it's connected
type Networks struct {
	dir  string
	cni  *libcni.CNIConfig
	list *libcni.NetworkConfigList
}

// Open returns networks that follow a CNI network configuration list, such as the one from bridge. It fails if a plugin is missing on this
// machine, and the error names it.
func Open(ctx context.Context, dir string, config []byte) (*Networks, error) {
	list, err := libcni.NetworkConfFromBytes(config)
	if err != nil {
		return nil, fmt.Errorf("the CNI network configuration: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	n := &Networks{dir: dir, cni: libcni.NewCNIConfigWithCacheDir(PluginDirs, filepath.Join(dir, "cache"), &plugins{}), list: list}
	if _, err := n.cni.ValidateNetworkList(ctx, list); err != nil {
		return nil, fmt.Errorf("CNI plugins: %w (install them with: apt-get install containernetworking-plugins)", err)
	}
	return n, nil
}

const bridgeName = "pintle0"

// OpenBridge returns the networks on the bridge that all Pintle's containers on a machine share. They can publish ports.
func OpenBridge(ctx context.Context, dir string, subnet netip.Prefix) (*Networks, error) {
	if err := checkBridge(subnet); err != nil {
		return nil, err
	}
	if err := guardBridge(subnet); err != nil {
		return nil, fmt.Errorf("the bridge's rules (nftables): %w", err)
	}
	if err := acceptPublished(ctx); err != nil {
		return nil, fmt.Errorf("the bridge's published ports: %w", err)
	}
	return Open(ctx, dir, bridge(subnet))
}

// checkBridge refuses a subnet other than that of the bridge, which an earlier or another agent made.
func checkBridge(subnet netip.Prefix) error {
	link, err := netlink.LinkByName(bridgeName)
	if _, none := errors.AsType[netlink.LinkNotFoundError](err); none {
		return nil
	}
	if err != nil {
		return err
	}
	addresses, err := netlink.AddrList(link, netlink.FAMILY_V4)
	if err != nil {
		return err
	}
	for _, a := range addresses {
		if own, err := netip.ParsePrefix(a.IPNet.String()); err == nil && own.Masked() != subnet.Masked() {
			return fmt.Errorf("the bridge %s of this machine has the address %s, which is not of the subnet %s: all agents of a machine share the "+
				"bridge and its subnet; to change it, end their containers and run: ip link delete %[1]s", bridgeName, own, subnet)
		}
	}
	return nil
}

// bridge returns the bridge's CNI configuration. Its state is in /run, because what it describes doesn't survive a reboot either.
func bridge(subnet netip.Prefix) []byte {
	type object = map[string]any
	b, err := json.Marshal(object{"cniVersion": "1.0.0", "name": "pintle", "plugins": []object{
		{
			"type": "bridge", "bridge": bridgeName, "isGateway": true, "hairpinMode": true,
			"ipam": object{
				"type": "host-local", "dataDir": "/run/pintle/addresses",
				"ranges": [][]object{{{"subnet": subnet.String()}}}, "routes": []object{{"dst": "0.0.0.0/0"}},
			},
		},
		{"type": "firewall"},
		{"type": "portmap", "snat": true, "capabilities": object{"portMappings": true}},
	}})
	if err != nil {
		panic(err) // strings and booleans always marshal
	}
	return b
}

// Attach makes a network namespace and connects it. If the ID already has one, Attach returns its address.
func (n *Networks) Attach(ctx context.Context, id string, ports []Port) (Address, error) {
	return n.attach(ctx, id, ports, makeNetNS)
}

// Adopt connects a network namespace that somebody else made.
func (n *Networks) Adopt(ctx context.Context, id, netns string) (Address, error) {
	return n.attach(ctx, id, nil, func(path string) error { return keepNetNS(netns, path) })
}

// ID returns the ID under which the namespace of an Address was attached.
func ID(netns string) string { return filepath.Base(filepath.Dir(netns)) }

func (n *Networks) attach(ctx context.Context, id string, ports []Port, make func(path string) error) (Address, error) {
	if a, err := n.Find(id); err == nil {
		return a, nil
	}
	dir := filepath.Join(n.dir, id)
	if err := n.Detach(ctx, id); err != nil { // removes an interrupted attempt, or one from before a reboot
		return Address{}, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Address{}, err
	}
	a, err := n.connect(ctx, id, ports, make)
	if err != nil {
		return Address{}, errors.Join(err, n.Detach(context.WithoutCancel(ctx), id))
	}
	return a, file.WriteJSON(filepath.Join(dir, "address.json"), a, false)
}

// Find returns the address of an existing network namespace.
func (n *Networks) Find(id string) (a Address, err error) {
	if err := file.ReadJSON(filepath.Join(n.dir, id, "address.json"), &a); err != nil {
		return Address{}, fmt.Errorf("network %s: %w", id, err)
	}
	if !isMounted(a.NetNS) {
		return Address{}, fmt.Errorf("network %s is gone", id)
	}
	return a, nil
}

func (n *Networks) connect(ctx context.Context, id string, ports []Port, make func(path string) error) (Address, error) {
	if err := file.WriteJSON(filepath.Join(n.dir, id, "ports.json"), ports, false); err != nil {
		return Address{}, err
	}
	path := n.netns(id)
	if err := make(path); err != nil {
		return Address{}, fmt.Errorf("make a network namespace: %w", err)
	}
	if err := reserve(path, ports); err != nil {
		return Address{}, err
	}
	if err := loopbackUp(path); err != nil {
		return Address{}, err
	}
	result, err := n.cni.AddNetworkList(ctx, n.list, n.runtimeConf(id, ports))
	if err != nil {
		return Address{}, fmt.Errorf("connect a network namespace: %w", err)
	}
	r, err := current.GetResult(result)
	if err != nil {
		return Address{}, err
	}
	a := Address{NetNS: path}
	for _, ip := range r.IPs {
		if ip.Address.IP.To4() != nil && a.IP == "" {
			a.IP = ip.Address.IP.String()
		}
	}
	for _, i := range r.Interfaces {
		if i.Sandbox == path {
			a.MAC = i.Mac
		}
	}
	if a.IP == "" {
		return Address{}, errors.New("the CNI network gives no IPv4 address")
	}
	return a, nil
}

// Detach disconnects and removes a network namespace, with its published ports. A missing one is no error.
func (n *Networks) Detach(ctx context.Context, id string) error {
	dir := filepath.Join(n.dir, id)
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var ports []Port
	if err := file.ReadJSON(filepath.Join(dir, "ports.json"), &ports); err == nil {
		if err := n.disconnect(ctx, id, ports); err != nil {
			return fmt.Errorf("disconnect a network namespace: %w", err)
		}
	}
	if err := errors.Join(release(n.netns(id), ports), kernel.Unmount(n.netns(id))); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// disconnect makes the plugins undo what they did. After an interrupted attempt, some plugins fail because part of it is missing. Then we
// call them without a namespace: they undo what is outside the namespace, and removing it ends the rest.
func (n *Networks) disconnect(ctx context.Context, id string, ports []Port) error {
	c := n.runtimeConf(id, ports)
	err := n.cni.DelNetworkList(ctx, n.list, c)
	if err == nil || c.NetNS == "" || ctx.Err() != nil {
		return err
	}
	c.NetNS = ""
	return n.cni.DelNetworkList(ctx, n.list, c)
}

// Create makes the network of a task in mode awsvpc, which publishes no ports. The engine calls it.
func (n *Networks) Create(ctx context.Context, taskID string) (netns, ip, mac string, err error) {
	a, err := n.Attach(ctx, taskID, nil)
	return a.NetNS, a.IP, a.MAC, err
}

// Delete removes a task's network.
func (n *Networks) Delete(ctx context.Context, taskID string) error { return n.Detach(ctx, taskID) }

func (n *Networks) netns(id string) string { return filepath.Join(n.dir, id, "netns") }

func (n *Networks) runtimeConf(id string, ports []Port) *libcni.RuntimeConf {
	c := &libcni.RuntimeConf{ContainerID: id, IfName: "eth0"}
	if path := n.netns(id); isMounted(path) { // without a namespace, the plugins have less to undo
		c.NetNS = path
	}
	if len(ports) > 0 {
		c.CapabilityArgs = map[string]any{"portMappings": ports}
	}
	return c
}
