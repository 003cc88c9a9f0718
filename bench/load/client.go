// Package load is what the benchmarks over HTTP share: a client that costs little, and servers as processes.
package load

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Client sends requests over a connection of its own, one after the other. It does no more than that:
// it shares the cores with the server that it measures, and net/http's client needs three times as much.
type Client struct {
	Address string
	conn    net.Conn
	in      *bufio.Reader
	body    bytes.Buffer
}

// Do sends a request, ready as bytes, and gives the answer's body, which is good until the next one.
func (c *Client) Do(request []byte) ([]byte, error) {
	if c.conn == nil {
		conn, err := net.Dial("tcp", c.Address)
		if err != nil {
			return nil, err
		}
		c.conn, c.in = conn, bufio.NewReaderSize(conn, 64<<10)
	}
	c.conn.SetDeadline(time.Now().Add(2 * time.Minute)) //nolint:errcheck // Write tells
	if _, err := c.conn.Write(request); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return nil, err
	}
	c.body.Reset()
	if _, err := c.body.ReadFrom(resp.Body); err != nil {
		return nil, err
	}
	if resp.Close {
		c.Close()
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s %.300s", resp.Status, c.body.Bytes())
	}
	return c.body.Bytes(), nil
}

// Close closes its connection.
func (c *Client) Close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}
