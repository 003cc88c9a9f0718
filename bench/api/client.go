package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// client sends requests over a connection of its own, one after the other. It does no more than that:
// it shares the cores with the server that it measures, and net/http's client needs three times as much.
type client struct {
	address string
	conn    net.Conn
	in      *bufio.Reader
	body    bytes.Buffer
}

// do sends a request, ready as bytes, and gives the answer's body, which is good until the next one.
func (c *client) do(request []byte) ([]byte, error) {
	if c.conn == nil {
		conn, err := net.Dial("tcp", c.address)
		if err != nil {
			return nil, err
		}
		c.conn, c.in = conn, bufio.NewReaderSize(conn, 64<<10)
	}
	c.conn.SetDeadline(time.Now().Add(30 * time.Second)) //nolint:errcheck // Write tells
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
		c.close()
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s %.300s", resp.Status, c.body.Bytes())
	}
	return c.body.Bytes(), nil
}

func (c *client) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// load sends a request again and again from several clients for a while, and gives how many answers
// came, how many that is a second, and the 99th percentile of their time in milliseconds. Every answer
// has to pass the check.
func (s *server) load(clients int, window time.Duration, operation, body string, check func([]byte) error) (n int, rate, p99 float64, err error) {
	request, err := s.request(operation, body)
	if err != nil {
		return 0, 0, 0, err
	}
	var ready bytes.Buffer
	if err := request.Write(&ready); err != nil {
		return 0, 0, 0, err
	}
	times := make([][]time.Duration, clients)
	errs := make([]error, clients)
	began := time.Now()
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			c := &client{address: request.URL.Host}
			defer c.close()
			for time.Since(began) < window && errs[i] == nil {
				at := time.Now()
				answer, err := c.do(ready.Bytes())
				times[i] = append(times[i], time.Since(at))
				if err == nil {
					err = check(answer)
				}
				errs[i] = err
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(began)
	all := slices.Concat(times...)
	slices.Sort(all)
	return len(all), float64(len(all)) / elapsed.Seconds(), float64(all[len(all)*99/100].Microseconds()) / 1000, errors.Join(errs...)
}
