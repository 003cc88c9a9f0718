package routing

import (
	"strconv"
	"strings"
)

// Redirect sends a client elsewhere. Its fields may hold #{protocol}, #{host}, #{port}, #{path} and #{query}, and stay as they are in the
// request where they are empty.
type Redirect struct {
	StatusCode string // HTTP_301 or HTTP_302
	Protocol   string
	Host       string
	Port       string
	Path       string
	Query      string
}

// withDefaults fills empty fields in.
func (d Redirect) withDefaults() Redirect {
	setDefault(&d.Protocol, "#{protocol}")
	setDefault(&d.Host, "#{host}")
	setDefault(&d.Port, "#{port}")
	setDefault(&d.Path, "/#{path}")
	setDefault(&d.Query, "#{query}")
	return d
}

// Code is the status code as a number.
func (d *Redirect) Code() int {
	if d.StatusCode == "HTTP_302" {
		return 302
	}
	return 301
}

// Location returns where a request of a balancer is sent. As with AWS, it always names the port. A port of the balancer's own is the one
// that it really has.
func (d *Redirect) Location(r *Request, b *Balancer) string {
	full := d.withDefaults()
	if port, err := strconv.Atoi(full.Port); err == nil && full.Host == "#{host}" {
		full.Port = strconv.Itoa(b.served(port))
	}
	replace := strings.NewReplacer(
		"#{protocol}", strings.ToLower(r.Protocol),
		"#{host}", hostName(r.Host),
		"#{port}", strconv.Itoa(r.Port),
		"#{path}", strings.TrimPrefix(r.Path, "/"),
		"#{query}", r.Query,
	)
	to := strings.ToLower(replace.Replace(full.Protocol)) + "://" + replace.Replace(full.Host) + ":" + replace.Replace(full.Port) +
		replace.Replace(full.Path)
	if query := replace.Replace(full.Query); query != "" {
		to += "?" + query
	}
	return to
}
