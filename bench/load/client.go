// Package load is shared by the benchmarks over HTTP: a client that costs little, and servers as processes.
package load

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Client sends requests one at a time over its own connection. It does as little as possible, because it shares the cores with
// the server that it measures. net/http's client needs three times as much CPU.
type Client struct {
	Address string
	conn    net.Conn
	in      *bufio.Reader
	body    bytes.Buffer
}

// Do sends a request, given as bytes, and returns the answer's body. The body is valid until the next call.
func (c *Client) Do(request []byte) ([]byte, error) {
	if c.conn == nil {
		conn, err := net.Dial("tcp", c.Address)
		if err != nil {
			return nil, err
		}
		c.conn = conn
		c.in = bufio.NewReaderSize(conn, 64<<10)
	}
	c.conn.SetDeadline(time.Now().Add(2 * time.Minute)) //nolint:errcheck // Write reports it
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

// Close closes the connection.
func (c *Client) Close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}
