package network

import (
	"net"
	"net/netip"
	"strconv"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// LinkLocal is where containers find their task metadata and credentials, as on AWS: at its port 80.
// The address exists inside their own network namespaces only, where the agent listens itself, on the
// two ports that ECS keeps for its agent; so nothing of it can be reached from elsewhere, every agent
// of a machine serves its own containers, and a container can still listen on port 80.
const LinkLocal = "169.254.170.2"

// The ports that the agent listens on inside a network namespace.
const (
	MetadataPort = 51679
	APIPort      = 51678 // leads to a control plane that listens on the machine's loopback
)

// Listen opens the two ports in a network namespace, and leads port 80 to the first.
func Listen(netnsPath string) (metadata, api net.Listener, err error) {
	address := netip.MustParseAddr(LinkLocal)
	err = within(netnsPath, func(ns netns.NsHandle, h *netlink.Handle, lo netlink.Link) error {
		if err := h.LinkSetUp(lo); err != nil {
			return err
		}
		if err := h.AddrReplace(lo, &netlink.Addr{IPNet: netlink.NewIPNet(address.AsSlice())}); err != nil {
			return err
		}
		if err := redirect(ns, address, 80, MetadataPort); err != nil {
			return err
		}
		return onThread(func() error {
			if err := netns.Set(ns); err != nil {
				return err
			}
			if metadata, err = listen(MetadataPort); err != nil {
				return err
			}
			if api, err = listen(APIPort); err != nil {
				metadata.Close()
			}
			return err
		})
	})
	return metadata, api, err
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp4", net.JoinHostPort(LinkLocal, strconv.Itoa(port)))
}

// redirect leads connections that a namespace's own processes open to one port of an address to
// another: a rule in a table of ours, made anew.
func redirect(ns netns.NsHandle, address netip.Addr, from, to uint16) error {
	c, err := nftables.New(nftables.WithNetNSFd(int(ns)))
	if err != nil {
		return err
	}
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "pintle"})
	c.FlushTable(table)
	chain := c.AddChain(&nftables.Chain{
		Name: "output", Table: table, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest,
	})
	const register, second = 1, 2
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: register},
		&expr.Cmp{Op: expr.CmpOpEq, Register: register, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: 16, Len: 4}, // destination address
		&expr.Cmp{Op: expr.CmpOpEq, Register: register, Data: address.AsSlice()},
		&expr.Payload{DestRegister: register, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2}, // destination port
		&expr.Cmp{Op: expr.CmpOpEq, Register: register, Data: binaryutil.BigEndian.PutUint16(from)},
		&expr.Immediate{Register: register, Data: address.AsSlice()},
		&expr.Immediate{Register: second, Data: binaryutil.BigEndian.PutUint16(to)},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: register, RegProtoMin: second},
	}})
	return c.Flush()
}
