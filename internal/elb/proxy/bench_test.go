package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/pintle/pintle/internal/elb/routing"
)

// BenchmarkRequests carries requests over loopback. Client and target are in the same process, but allocate nothing: what is counted is the proxy's.
func BenchmarkRequests(b *testing.B) {
	body := strings.Repeat("x", 1<<10)
	long := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
	chunked := fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	for _, c := range []struct{ name, request, answer string }{
		{"GET", "GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: b\r\nAccept: */*\r\n\r\n", long},
		{"GET, chunked", "GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: b\r\nAccept: */*\r\n\r\n", chunked},
		{"POST", "POST / HTTP/1.1\r\nHost: a\r\nUser-Agent: b\r\nAccept: */*\r\nContent-Type: text/plain\r\n" + long, long},
	} {
		b.Run(c.name, func(b *testing.B) {
			answer := "HTTP/1.1 200 OK\r\nServer: x\r\nDate: Thu, 26 Nov 2026 08:00:00 GMT\r\nContent-Type: text/plain\r\n" + c.answer
			target := sink(b, answer, []byte(c.request[strings.Index(c.request, "\r\n\r\n"):]))
			p, _ := start(b, Config{})
			p.Observer = nobody{}
			port := freePort(b)
			set(b, p, one(port, routing.HTTP, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{targetOf("a", target)}}))
			settle(b, p, 1)
			b.ReportAllocs()
			b.SetParallelism(8)
			before := processor(b)
			defer func() { b.ReportMetric(float64(processor(b)-before)/float64(b.N), "processor-ns/op") }()
			b.RunParallel(func(pb *testing.PB) {
				conn, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
				if err != nil {
					b.Error(err)
					return
				}
				defer conn.Close()
				in := bufio.NewReader(conn)
				if err := roundTrips(conn, in, []byte(c.request), pb); err != nil {
					b.Error(err)
				}
			})
		})
	}
}

// processor returns what the process has used, in nanoseconds: on a busy machine that says more than the time that has passed.
func processor(b *testing.B) int64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}

// roundTrips sends a request as often as it's told to. The first answer is parsed; the others must be as long.
func roundTrips(conn net.Conn, in *bufio.Reader, request []byte, pb *testing.PB) error {
	length := 0
	for pb.Next() {
		if _, err := conn.Write(request); err != nil {
			return err
		}
		if length > 0 {
			if err := skip(in, length); err != nil {
				return err
			}
			continue
		}
		var seen bytes.Buffer
		resp, err := http.ReadResponse(bufio.NewReader(io.TeeReader(in, &seen)), nil)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s, %w", resp.Status, err)
		}
		length = seen.Len()
	}
	return nil
}

func skip(in *bufio.Reader, length int) error {
	_, err := in.Discard(length)
	return err
}

// sink is a target that answers each request, which ends as told, with the same bytes. Health checks end otherwise, so their head is enough.
func sink(b *testing.B, answer string, end []byte) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go serveAll(l, func(c net.Conn) {
		defer c.Close()
		buffer := make([]byte, 16<<10)
		for have := 0; ; {
			n, err := c.Read(buffer[have:])
			if err != nil {
				return
			}
			have += n
			if bytes.HasSuffix(buffer[:have], end) || bytes.Contains(buffer[:have], []byte("ELB-HealthChecker")) {
				io.WriteString(c, answer) //nolint:errcheck // the proxy sees it
				have = 0
			}
		}
	})
	return l.Addr().String()
}
