package network

import (
	"crypto/rand"
	"io"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// HoldBack drops what containers on a bridge send to the agent's addresses, LinkLocal and those given, before it listens in their namespaces,
// which it can do only once they run if somebody else starts them. Without this their first packets would go where the machine sends what it
// doesn't know: to its gateway, with the path of the task's credentials in them, to a service of the machine's own, or nowhere, which ends
// their call at once. Dropped, they are sent again a second later, as TCP does it, and by then the address is in the namespace.
//
// The rule lasts until it is closed or this process ends, since the kernel removes the table with the socket that made it. So agents of one
// machine, each with a table of its own, don't disturb each other. It leaves alone what somebody redirects, such as Amazon's agent, and a
// machine that has the address itself.
func HoldBack(bridge string, addresses ...string) (io.Closer, error) {
	table := &nftables.Table{Family: nftables.TableFamilyIPv4, Name: "pintle-" + rand.Text()}
	var socket *netlink.Conn
	c, err := nftables.New(nftables.AsLasting(), nftables.WithSockOptions(func(s *netlink.Conn) error {
		socket = s
		return addOwnedTable(s, table)
	}))
	if err != nil {
		if socket != nil {
			socket.Close() //nolint:errcheck // the other error says more
		}
		return nil, err
	}
	chain := c.AddChain(&nftables.Chain{
		Name:     "prerouting",
		Table:    table,
		Type:     nftables.ChainTypeFilter,
		Hooknum:  nftables.ChainHookPrerouting,
		Priority: nftables.ChainPriorityFilter, // after redirections
	})
	for _, address := range append(addresses, LinkLocal) {
		match := []expr.Any{&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: register}, equals(interfaceName(bridge))}
		match = append(match, addressIn(destinationAddress, netip.PrefixFrom(netip.MustParseAddr(address), 32))...)
		match = append(match,
			&expr.Fib{Register: register, FlagDADDR: true, ResultADDRTYPE: true},
			&expr.Cmp{Op: expr.CmpOpNeq, Register: register, Data: []byte{unix.RTN_LOCAL, 0, 0, 0}})
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: append(match, &expr.Verdict{Kind: expr.VerdictDrop})})
	}
	if err := c.Flush(); err != nil {
		socket.Close() //nolint:errcheck // the other error says more
		return nil, err
	}
	return socket, nil
}

// addOwnedTable makes a table that only this socket can change, and that ends with it. The library makes none with flags.
func addOwnedTable(s *netlink.Conn, t *nftables.Table) error {
	attributes, err := netlink.MarshalAttributes([]netlink.Attribute{
		{Type: unix.NFTA_TABLE_NAME, Data: []byte(t.Name + "\x00")},
		{Type: unix.NFTA_TABLE_FLAGS, Data: []byte{0, 0, 0, ownedTable}},
	})
	if err != nil {
		return err
	}
	message := func(kind netlink.HeaderType, flags netlink.HeaderFlags, family, subsystem byte, data ...byte) netlink.Message {
		return netlink.Message{
			Header: netlink.Header{Type: kind, Flags: netlink.Request | flags},
			Data:   append([]byte{family, unix.NFNETLINK_V0, 0, subsystem}, data...),
		}
	}
	const newTable = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWTABLE
	_, err = s.SendMessages([]netlink.Message{
		message(unix.NFNL_MSG_BATCH_BEGIN, 0, 0, unix.NFNL_SUBSYS_NFTABLES),
		message(newTable, netlink.Create|netlink.Acknowledge, byte(t.Family), 0, attributes...),
		message(unix.NFNL_MSG_BATCH_END, 0, 0, unix.NFNL_SUBSYS_NFTABLES),
	})
	if err != nil {
		return err
	}
	_, err = s.Receive()
	return err
}

// ownedTable is NFT_TABLE_F_OWNER, which Linux has since 5.12.
const ownedTable = 2
