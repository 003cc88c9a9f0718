package network

import (
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// The first two registers of a rule. They hold what it compares or sets.
const register, second = 1, 2

// load reads part of a packet's header into the first register.
func load(base expr.PayloadBase, offset, length uint32) expr.Any {
	return &expr.Payload{DestRegister: register, Base: base, Offset: offset, Len: length}
}

func equals(data []byte) expr.Any {
	return &expr.Cmp{Op: expr.CmpOpEq, Register: register, Data: data}
}

// addressIn matches packets whose address at the offset of the IPv4 header is in a network.
func addressIn(offset uint32, p netip.Prefix) []expr.Any {
	mask := make([]byte, 4)
	for i := range p.Bits() {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	return []expr.Any{
		load(expr.PayloadBaseNetworkHeader, offset, 4),
		&expr.Bitwise{SourceRegister: register, DestRegister: register, Len: 4, Mask: mask, Xor: make([]byte, 4)},
		equals(p.Masked().Addr().AsSlice()),
	}
}

// The offsets of the addresses in an IPv4 header.
const sourceAddress, destinationAddress = 12, 16

// interfaceName pads a name with zeros, which is the form that the kernel compares.
func interfaceName(name string) []byte {
	return append([]byte(name), make([]byte, unix.IFNAMSIZ-len(name))...)
}

// guardBridge rewrites our nftables table on the machine. One rule masquerades what the bridge's containers send out. The other drops what
// they send to the machine's loopback, which publishing ports on loopback would otherwise let in (CVE-2020-8558).
func guardBridge(subnet netip.Prefix) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "pintle"})
	c.FlushTable(table)
	in := c.AddChain(&nftables.Chain{
		Name:     "prerouting",
		Table:    table,
		Type:     nftables.ChainTypeFilter,
		Hooknum:  nftables.ChainHookPrerouting,
		Priority: nftables.ChainPriorityRaw,
	})
	out := c.AddChain(&nftables.Chain{
		Name:     "postrouting",
		Table:    table,
		Type:     nftables.ChainTypeNAT,
		Hooknum:  nftables.ChainHookPostrouting,
		Priority: nftables.ChainPriorityNATSource,
	})
	drop := []expr.Any{&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: register}, equals(interfaceName(bridgeName))}
	drop = append(drop, addressIn(destinationAddress, netip.MustParsePrefix("127.0.0.0/8"))...)
	c.AddRule(&nftables.Rule{Table: table, Chain: in, Exprs: append(drop, &expr.Verdict{Kind: expr.VerdictDrop})})
	masquerade := append(addressIn(sourceAddress, subnet),
		&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: register},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: register, Data: interfaceName(bridgeName)},
		&expr.Masq{})
	c.AddRule(&nftables.Rule{Table: table, Chain: out, Exprs: masquerade})
	return c.Flush()
}

// redirection leads what is sent to one port of an address, by some protocols, to another port.
type redirection struct {
	address   netip.Addr
	from, to  uint16
	protocols []byte
}

// redirect redirects what a namespace's own processes send. It rewrites the table with this name in that namespace.
func redirect(netns int, name string, all ...redirection) error {
	c, err := nftables.New(nftables.WithNetNSFd(netns))
	if err != nil {
		return err
	}
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: name})
	c.FlushTable(table)
	chain := c.AddChain(&nftables.Chain{
		Name:     "output",
		Table:    table,
		Type:     nftables.ChainTypeNAT,
		Hooknum:  nftables.ChainHookOutput,
		Priority: nftables.ChainPriorityNATDest,
	})
	for _, r := range all {
		for _, protocol := range r.protocols {
			c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
				&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: register},
				equals([]byte{protocol}),
				load(expr.PayloadBaseNetworkHeader, destinationAddress, 4),
				equals(r.address.AsSlice()),
				load(expr.PayloadBaseTransportHeader, 2, 2), // destination port
				equals(binaryutil.BigEndian.PutUint16(r.from)),
				&expr.Immediate{Register: register, Data: r.address.AsSlice()},
				&expr.Immediate{Register: second, Data: binaryutil.BigEndian.PutUint16(r.to)},
				&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: register, RegProtoMin: second},
			}})
		}
	}
	return c.Flush()
}

// redirectFirst does so where nothing has been redirected yet. The kernel begins to track connections a moment before the first rules hold, and
// never redirects one that began in that moment. So until they hold, what goes to these addresses isn't tracked: it's lost as before, and sent
// again. Where there are rules already connections are under way, which stay tracked.
func redirectFirst(netns int, name string, all ...redirection) error {
	c, err := nftables.New(nftables.WithNetNSFd(netns))
	if err != nil {
		return err
	}
	tables, err := c.ListTablesOfFamily(nftables.TableFamilyIPv4)
	if err != nil {
		return err
	}
	untracked := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: name + "-untracked"})
	c.FlushTable(untracked)
	if !slices.ContainsFunc(tables, func(t *nftables.Table) bool { return t.Name == name }) {
		leaveUntracked(c, untracked, all)
	}
	if err := c.Flush(); err != nil {
		return err
	}
	if err := redirect(netns, name, all...); err != nil {
		return err
	}
	c.DelTable(untracked)
	return c.Flush()
}

// leaveUntracked adds rules by which nothing is tracked that goes to these addresses.
func leaveUntracked(c *nftables.Conn, table *nftables.Table, all []redirection) {
	chain := c.AddChain(&nftables.Chain{
		Name:     "output",
		Table:    table,
		Type:     nftables.ChainTypeFilter,
		Hooknum:  nftables.ChainHookOutput,
		Priority: nftables.ChainPriorityRaw, // before it's tracked
	})
	for _, r := range all {
		to := addressIn(destinationAddress, netip.PrefixFrom(r.address, r.address.BitLen()))
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: append(to, &expr.Notrack{})})
	}
}
