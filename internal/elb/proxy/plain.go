package proxy

import (
	"bytes"
	"strings"
)

// isPlain reports whether a request's head, up to its empty line, is a plain one: HTTP/1.1 for a path, by a method and with headers that leave no
// doubt that it has no body and wants no more of its connection than that it be kept or closed. What it takes net/http takes too, and reads alike; it takes little of that.
func isPlain(head []byte) bool {
	line, rest, ok := bytes.Cut(head, []byte("\r\n"))
	if !ok || !isPlainLine(line) {
		return false
	}
	hosts := 0
	for {
		if line, rest, ok = bytes.Cut(rest, []byte("\r\n")); !ok {
			return false
		}
		if len(line) == 0 {
			return hosts == 1 && len(rest) == 0
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || !isEach(name, isOfName) || !isEach(value, isOfValue) || !isPlainHeader(name, bytes.Trim(value, " \t")) {
			return false
		}
		if len(name) == len("Host") && is(name, "Host") {
			hosts++
		}
	}
}

// isPlainLine judges a request line.
func isPlainLine(line []byte) bool {
	method, rest, ok := bytes.Cut(line, []byte(" "))
	if !ok {
		return false
	}
	switch string(method) {
	case "GET", "HEAD", "OPTIONS", "DELETE":
	default:
		return false
	}
	path, ok := bytes.CutSuffix(rest, []byte(" HTTP/1.1"))
	if !ok || len(path) == 0 || path[0] != '/' {
		return false
	}
	query := false
	for i, b := range path {
		if b <= ' ' || b >= 0x7f {
			return false
		}
		query = query || b == '?'
		if b == '%' && !query && (len(path) < i+3 || !isHex(path[i+1]) || !isHex(path[i+2])) {
			return false
		}
	}
	return true
}

// isPlainHeader judges a header whose letters are right.
func isPlainHeader(name, value []byte) bool {
	switch len(name) {
	case len("Host"):
		return !is(name, "Host") || len(value) > 0 && isEach(value, isOfHost)
	case len("Expect"):
		return !is(name, "Expect")
	case len("Upgrade"):
		return !is(name, "Upgrade") && !is(name, "Trailer")
	case len("Connection"):
		return !is(name, "Connection") || is(value, "keep-alive") || is(value, "close")
	case len("Content-Length"):
		return !is(name, "Content-Length") && !is(name, "HTTP2-Settings")
	case len("Transfer-Encoding"):
		return !is(name, "Transfer-Encoding")
	}
	return len(name) > 0
}

func is(text []byte, other string) bool { return strings.EqualFold(string(text), other) }

func isEach(text []byte, ok func(byte) bool) bool {
	for _, b := range text {
		if !ok(b) {
			return false
		}
	}
	return true
}

func isOfName(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '-' || b == '_'
}

func isOfValue(b byte) bool { return b >= ' ' && b != 0x7f || b == '\t' }

func isOfHost(b byte) bool { return isOfName(b) || b == '.' || b == ':' || b == '[' || b == ']' }

func isHex(b byte) bool { return b >= '0' && b <= '9' || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F' }
