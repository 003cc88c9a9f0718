package network

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Firewall is what may come into and go out of a network namespace. Replies and whatever stays inside always pass, and so does what keeps
// addresses working (neighbour discovery, DHCP), as security groups leave that alone on AWS.
type Firewall struct {
	In  []Passage
	Out []Passage
}

// Passage lets traffic pass.
type Passage struct {
	Protocol int // IANA's number, or -1 for all
	// From and To are the first and the last port of TCP and UDP. Of ICMP they are the type and the code. -1 stands for any.
	From int
	To   int
	// Peers are the blocks that it comes from or goes to. They are disjoint.
	Peers []netip.Prefix
}

// firewallTable is the name of a namespace's table.
const firewallTable = "pintle-groups"

// bufferSize is what the kernel may hold of one firewall, in bytes. Some thousand members of source groups take half of it.
const bufferSize = 8 << 20

// Restrict gives a network namespace a firewall, in place of the one that it had. There's no moment with neither, and what is connected
// stays so. The rules are inside, so they end with the namespace, hold while no agent runs, and work with any CNI network.
func Restrict(netnsPath string, f Firewall) error {
	return inFirewall(netnsPath, func(c *nftables.Conn, table *nftables.Table) error {
		c.AddTable(table) // so that there is one to delete
		c.DelTable(table)
		c.AddTable(table)
		w := &firewallWriter{conn: c, table: table}
		if err := w.chain("input", nftables.ChainHookInput, f.In, incoming); err != nil {
			return err
		}
		return w.chain("output", nftables.ChainHookOutput, f.Out, outgoing)
	})
}

// CanRestrict reports whether this process may use nftables, and the kernel has them.
func CanRestrict() bool {
	_, err := new(nftables.Conn).ListTables()
	return err == nil
}

// Unrestrict takes the firewall of a network namespace away. Without one it's no error.
func Unrestrict(netnsPath string) error {
	return inFirewall(netnsPath, func(c *nftables.Conn, table *nftables.Table) error {
		c.AddTable(table)
		c.DelTable(table)
		return nil
	})
}

func inFirewall(netnsPath string, do func(*nftables.Conn, *nftables.Table) error) error {
	ns, err := netns.GetFromPath(netnsPath)
	if err != nil {
		return err
	}
	defer ns.Close()
	own, err := netns.Get()
	if err != nil {
		return err
	}
	defer own.Close()
	if ns.Equal(own) { // as in within
		return fmt.Errorf("%s is the machine's own network", netnsPath)
	}
	c, err := nftables.New(nftables.WithNetNSFd(int(ns)), nftables.WithSockOptions(func(s *netlink.Conn) error {
		return s.SetWriteBuffer(bufferSize)
	}), nftables.WithSockOptions(func(s *netlink.Conn) error { return s.SetReadBuffer(bufferSize) }))
	if err != nil {
		return err
	}
	if err := do(c, &nftables.Table{Family: nftables.TableFamilyINet, Name: firewallTable}); err != nil {
		return err
	}
	return c.Flush()
}

// side is what differs between what comes in and what goes out.
type side struct {
	interfaceName expr.MetaKey
	peer4         uint32 // where the peer's address is in a header of IPv4
	peer6         uint32 // and of IPv6
	dhcp4, dhcp6  uint16 // the port to which DHCP's messages go
}

var (
	incoming = side{expr.MetaKeyIIFNAME, sourceAddress, 8, 68, 546}
	outgoing = side{expr.MetaKeyOIFNAME, destinationAddress, 24, 67, 547}
)

// firewallWriter writes one firewall.
type firewallWriter struct {
	conn  *nftables.Conn
	table *nftables.Table
	sets  uint32
}

// chain writes a chain that drops whatever isn't let pass.
func (w *firewallWriter) chain(name string, hook *nftables.ChainHook, all []Passage, s side) error {
	chain := w.conn.AddChain(&nftables.Chain{
		Name:     name,
		Table:    w.table,
		Type:     nftables.ChainTypeFilter,
		Hooknum:  hook,
		Priority: nftables.ChainPriorityFilter,
		Policy:   new(nftables.ChainPolicyDrop),
	})
	pass := func(match ...expr.Any) {
		w.conn.AddRule(&nftables.Rule{Table: w.table, Chain: chain, Exprs: append(match, &expr.Verdict{Kind: expr.VerdictAccept})})
	}
	pass(isReply()...)
	pass(&expr.Meta{Key: s.interfaceName, Register: register}, equals(interfaceName("lo")))
	pass(slices.Concat(hasProtocol(unix.IPPROTO_ICMPV6), between(0, 1, 133, 137))...) // neighbour discovery
	for _, port := range []uint16{s.dhcp4, s.dhcp6} {
		pass(slices.Concat(hasProtocol(unix.IPPROTO_UDP), between(2, 2, int(port), int(port)))...)
	}
	for _, p := range all {
		for _, is4 := range []bool{true, false} {
			peers, err := w.fromPeers(p.Peers, is4, s)
			if err != nil {
				return err
			}
			if peers != nil {
				pass(slices.Concat(peers, ofTraffic(p))...)
			}
		}
	}
	return nil
}

// isReply matches packets of connections that were let pass, and what belongs to them, such as ICMP's errors.
func isReply() []expr.Any {
	const known = expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED
	return []expr.Any{
		&expr.Ct{Register: register, Key: expr.CtKeySTATE},
		&expr.Bitwise{
			SourceRegister: register, DestRegister: register, Len: 4,
			Mask: binaryutil.NativeEndian.PutUint32(known), Xor: make([]byte, 4),
		},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: register, Data: make([]byte, 4)},
	}
}

func hasProtocol(number int) []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: register}, equals([]byte{byte(number)})}
}

// between matches a number in the header of the transport protocol: a port of two bytes, or a type of one.
func between(offset, length uint32, from, to int) []expr.Any {
	bytesOf := func(n int) []byte { return binaryutil.BigEndian.PutUint16(uint16(n))[2-length:] }
	return []expr.Any{
		load(expr.PayloadBaseTransportHeader, offset, length),
		&expr.Cmp{Op: expr.CmpOpGte, Register: register, Data: bytesOf(from)},
		&expr.Cmp{Op: expr.CmpOpLte, Register: register, Data: bytesOf(to)},
	}
}

// ofTraffic matches a passage's protocol, and its ports, or its ICMP type and code.
func ofTraffic(p Passage) (match []expr.Any) {
	if p.Protocol < 0 {
		return nil
	}
	match = hasProtocol(p.Protocol)
	switch p.Protocol {
	case unix.IPPROTO_TCP, unix.IPPROTO_UDP:
		if p.From >= 0 {
			match = append(match, between(2, 2, p.From, p.To)...)
		}
	case unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6:
		if p.From >= 0 {
			match = append(match, between(0, 1, p.From, p.From)...)
		}
		if p.From >= 0 && p.To >= 0 {
			match = append(match, between(1, 1, p.To, p.To)...)
		}
	}
	return match
}

// fromPeers matches packets whose peer is in one of the blocks of one IP version. It returns nil if there are none.
func (w *firewallWriter) fromPeers(blocks []netip.Prefix, is4 bool, s side) ([]expr.Any, error) {
	blocks = slices.DeleteFunc(slices.Clone(blocks), func(p netip.Prefix) bool { return p.Addr().Is4() != is4 })
	if len(blocks) == 0 {
		return nil, nil
	}
	version, offset, length, kind := byte(unix.NFPROTO_IPV4), s.peer4, uint32(4), nftables.TypeIPAddr
	if !is4 {
		version, offset, length, kind = unix.NFPROTO_IPV6, s.peer6, 16, nftables.TypeIP6Addr
	}
	match := []expr.Any{&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: register}, equals([]byte{version})}
	if blocks[0].Bits() == 0 { // anybody
		return match, nil
	}
	w.sets++
	set := &nftables.Set{Table: w.table, ID: w.sets, Name: fmt.Sprintf("peers%d", w.sets), Interval: true, KeyType: kind}
	if err := w.conn.AddSet(set, nil); err != nil {
		return nil, err
	}
	for part := range slices.Chunk(intervals(blocks), maxElements) {
		if err := w.conn.SetAddElements(set, part); err != nil {
			return nil, err
		}
	}
	return append(match,
		load(expr.PayloadBaseNetworkHeader, offset, length),
		&expr.Lookup{SourceRegister: register, SetName: set.Name, SetID: set.ID}), nil
}

// maxElements is how many elements of a set one message has, so that it is within netlink's 64 KiB.
const maxElements = 512

// intervals returns the elements of a set of blocks: the first address of each, and the one behind its last. Blocks that touch are joined,
// since the kernel takes no address as both an end and a beginning.
func intervals(blocks []netip.Prefix) (out []nftables.SetElement) {
	slices.SortFunc(blocks, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
	for _, b := range blocks {
		first := b.Masked().Addr().AsSlice()
		if n := len(out); n > 0 && out[n-1].IntervalEnd && bytes.Equal(out[n-1].Key, first) {
			out = out[:n-1]
		} else {
			out = append(out, nftables.SetElement{Key: first})
		}
		if end := behind(b); end.IsValid() {
			out = append(out, nftables.SetElement{Key: end.AsSlice(), IntervalEnd: true})
		}
	}
	return out
}

// behind returns the address behind a block, which isn't valid behind the last one of all.
func behind(p netip.Prefix) netip.Addr {
	last := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < len(last)*8; i++ {
		last[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(last)
	return a.Next()
}
