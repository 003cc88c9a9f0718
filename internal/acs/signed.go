package acs

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// A frame from an agent to TCS has its own signature: header lines, a blank line, and then the JSON.

var endOfHeader = []byte("\r\n\r\n")

// maxHeader bounds the header of a signed frame, in bytes. Session tokens are its longest part.
const maxHeader = 64 << 10

// EncodeSigned puts the signature's headers before an encoded message.
func EncodeSigned(h http.Header, frame []byte) []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, v := range h[name] {
			fmt.Fprintf(&b, "%s: %s\r\n", name, v)
		}
	}
	b.WriteString("\r\n")
	b.Write(frame)
	return b.Bytes()
}

// DecodeSigned splits a frame into its headers and the encoded message. A frame without headers is all message. The names of
// headers are in Go's canonical form, whatever their case was.
func DecodeSigned(b []byte) (http.Header, []byte, error) {
	h := http.Header{}
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) {
		return h, b, nil
	}
	head, body, ok := bytes.Cut(b, endOfHeader)
	if !ok || len(head) > maxHeader {
		return nil, nil, fmt.Errorf("acs: a signed frame of %d bytes without the end of its header", len(b))
	}
	for line := range strings.SplitSeq(string(head), "\r\n") {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, nil, fmt.Errorf("acs: a signed frame has a header line without a colon")
		}
		h.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return h, body, nil
}
