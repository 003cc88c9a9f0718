package accesslog

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/elb/proxy"
)

// maxAgent is how much of a user agent a line has: the page on access logs.
const maxAgent = 8 << 10

// stamp is how lines have times.
const stamp = "2006-01-02T15:04:05.000000Z"

// Line returns what the log says of a request, in the fields and the order of AWS's page "Access logs for your Application Load Balancer".
// The certificate is the ARN of the one that the client was shown, or "".
func Line(r *proxy.Request, certificate string) []byte {
	target, status := "-", "-"
	if r.Target.Address != "" {
		target = net.JoinHostPort(r.Target.Address, strconv.Itoa(r.Target.Port))
	}
	if r.TargetStatus > 0 {
		status = strconv.Itoa(r.TargetStatus)
	}
	cipher, version := "-", "-"
	if r.TLSVersion != 0 {
		cipher = cipherName(tls.CipherSuiteName(r.TLSCipher))
		version = strings.ReplaceAll(tls.VersionName(r.TLSVersion), "TLS 1.", "TLSv1.")
	}
	waited, answered, sent := times(r)
	fields := []string{
		r.Type, r.Start.Add(r.Duration).UTC().Format(stamp), Resource(r.Balancer), r.Client.String(), target,
		waited, answered, sent, strconv.Itoa(r.Status), status, strconv.FormatInt(r.Received, 10), strconv.FormatInt(r.Sent, 10),
		quote(r.Method + " " + cmp.Or(r.URL, "-") + " " + r.Proto), quote(r.UserAgent[:min(len(r.UserAgent), maxAgent)]),
		cipher, version, cmp.Or(r.Group, "-"), quote(r.TraceID), quote(r.ServerName), quote(certificate), priority(r),
		r.Start.UTC().Format(stamp), quote(r.Action), quote(r.RedirectURL), quote(r.ErrorReason), quote(target), quote(status),
		quote(""), quote(""), // how the request was classified, and why: it met the RFC, or else it was answered before it came this far
		"-", // connections have no ids
	}
	return append([]byte(strings.Join(fields, " ")), '\n')
}

// Resource returns a load balancer as logs name it: app/NAME/ID.
func Resource(arn string) string {
	_, resource, _ := strings.Cut(arn, ":loadbalancer/")
	return cmp.Or(resource, arn)
}

// times returns how long a request took until it was with its target, until that answered, and until the answer was with the client. Without
// an answer of a target all are -1.
func times(r *proxy.Request) (waited, answered, sent string) {
	if r.TargetTime < 0 || r.TargetStatus == 0 {
		return "-1", "-1", "-1"
	}
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
	return seconds(r.Waited), seconds(r.TargetTime), "0.000" // an answer's head is sent at once
}

// cipherName returns a cipher suite as OpenSSL calls it: suites before TLS 1.3 have other names there.
func cipherName(name string) string {
	exchange, cipher, ok := strings.Cut(strings.TrimPrefix(name, "TLS_"), "_WITH_")
	if !ok {
		return name
	}
	cipher = strings.NewReplacer("AES_", "AES", "_CBC", "", "POLY1305_SHA256", "POLY1305").Replace(cipher)
	return strings.ReplaceAll(exchange+"-"+cipher, "_", "-")
}

// priority returns the priority of the rule that a request met: 0 for the default one, and - for what no rule was asked about.
func priority(r *proxy.Request) string {
	if r.Action == "" {
		return "-"
	}
	return strconv.Itoa(r.Priority)
}

// quote returns a field in quotation marks. What would end it, or isn't printable ASCII, is written as \xHH.
func quote(text string) string {
	if text == "" {
		return `"-"`
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			fmt.Fprintf(&b, `\x%02X`, c)
			continue
		}
		b.WriteByte(text[i])
	}
	b.WriteByte('"')
	return b.String()
}
