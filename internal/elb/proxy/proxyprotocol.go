package proxy

import (
	"encoding/binary"
	"net"
	"net/netip"
)

// signature begins each header of the PROXY protocol, version 2: section 2.2 of its specification.
const signature = "\r\n\r\n\x00\r\nQUIT\n"

// The second byte behind the signature, which says what a connection is for, and the third, which says what addresses there are.
const (
	forItself = 0x20 // a connection of the balancer's own, such as a health check
	forClient = 0x21
	noAddress = 0x00
	overIPv4  = 0x11
	overIPv6  = 0x21
)

// ownHeader stands before what the balancer itself says.
var ownHeader = []byte(signature + string([]byte{forItself, noAddress, 0, 0}))

// proxyHeader tells a target who its client is, and what address that has connected to.
func proxyHeader(client, listener netip.AddrPort) []byte {
	from, to := client.Addr().Unmap(), listener.Addr().Unmap()
	b := append([]byte(signature), forClient)
	if from.Is4() && to.Is4() {
		b = append(b, overIPv4, 0, 12)
		b = append(b, from.AsSlice()...)
		b = append(b, to.AsSlice()...)
	} else {
		source, destination := from.As16(), to.As16()
		b = append(b, overIPv6, 0, 36)
		b = append(b, source[:]...)
		b = append(b, destination[:]...)
	}
	b = binary.BigEndian.AppendUint16(b, client.Port())
	return binary.BigEndian.AppendUint16(b, listener.Port())
}

// addressOf returns the address of one end of a connection, or none in tests with pipes.
func addressOf(a net.Addr) netip.AddrPort {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort()
	}
	return netip.AddrPort{}
}
