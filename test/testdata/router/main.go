// Command router stands in for Fluent Bit and Fluentd: it takes logs where their configuration says that they would, and prints them.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	for _, path := range []string{"/fluent-bit/etc/fluent-bit.conf", "/fluentd/etc/fluent.conf"} {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		fmt.Println("configured for app:", strings.Contains(string(b), "app-firelens*"), os.Getenv("FLUENT_UID"))
	}
	for network, address := range map[string]string{"unix": "/var/run/fluent.sock", "tcp4": "0.0.0.0:24224"} {
		l, err := net.Listen(network, address)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		go serve(l)
	}
	<-stop
}

func serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			r := bufio.NewReader(conn)
			for {
				m, err := decode(r)
				if err != nil {
					return
				}
				show(m)
			}
		}()
	}
}

// show prints a message of the forward mode, or of the message mode, which has a time and a record in place of entries.
func show(m any) {
	message, ok := m.([]any)
	if !ok {
		fmt.Println(m)
		return
	}
	tag := message[0].(string)
	entries, ok := message[1].([]any)
	if !ok {
		entries = []any{message[1:3]}
	}
	for _, entry := range entries {
		record := entry.([]any)[1].(map[string]any)
		fmt.Println(tag[:strings.LastIndex(tag, "firelens-")+9], record["source"], record["log"], len(record))
	}
}

// decode reads one value of MessagePack. A byte of text is the number that it also is there.
func decode(r *bufio.Reader) (any, error) {
	kind, err := r.ReadByte()
	if err != nil {
		return nil, err
	}
	switch {
	case kind < 0x80:
		rest, _ := r.ReadString('\n')
		return "direct: " + string(kind) + strings.TrimSpace(rest), nil
	case kind < 0x90:
		return pairs(r, int(kind&15))
	case kind < 0xa0:
		return list(r, int(kind&15))
	case kind < 0xc0:
		return text(r, int(kind&31))
	}
	switch kind {
	case 0xc0:
		return nil, nil
	case 0xce:
		return text(r, 4)
	case 0xcf, 0xd3:
		return text(r, 8)
	case 0xd7:
		return text(r, 9)
	case 0xd9:
		n, err := r.ReadByte()
		if err != nil {
			return nil, err
		}
		return text(r, int(n))
	case 0xda, 0xdc:
		var n uint16
		if err := binary.Read(r, binary.BigEndian, &n); err != nil {
			return nil, err
		}
		if kind == 0xdc {
			return list(r, int(n))
		}
		return text(r, int(n))
	}
	return nil, fmt.Errorf("an unexpected %x", kind)
}

func text(r io.Reader, n int) (any, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return string(b), err
}

func list(r *bufio.Reader, n int) (any, error) {
	out := make([]any, n)
	for i := range out {
		v, err := decode(r)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func pairs(r *bufio.Reader, n int) (any, error) {
	out := map[string]any{}
	for range n {
		key, err := decode(r)
		if err != nil {
			return nil, err
		}
		if out[fmt.Sprint(key)], err = decode(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}
