package oci

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// files writes the container's own /etc/hosts, hostname and resolv.conf, and makes /etc/mtab.
func (b *bundle) files() error {
	resolv, err := b.resolvConf()
	if err != nil {
		return err
	}
	hosts, err := b.hosts()
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"hosts": hosts, "hostname": b.hostname() + "\n", "resolv.conf": resolv} {
		path := filepath.Join(b.dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
		b.bind(path, "/etc/"+name, b.spec.ReadonlyRootfs)
	}
	return linkMtab(filepath.Join(b.dir, "rootfs"))
}

// linkMtab makes /etc/mtab, by which older programs find what is mounted, as Docker does. An image that has one keeps it.
func linkMtab(rootfs string) error {
	root, err := os.OpenRoot(rootfs)
	if err != nil {
		return err
	}
	defer root.Close()
	root.MkdirAll("etc", 0o755)              //nolint:errcheck // an image whose /etc leads elsewhere goes without
	root.Symlink("/proc/mounts", "etc/mtab") //nolint:errcheck // as above
	return nil
}

// localHosts are the names that every /etc/hosts has, as in Docker.
const localHosts = `127.0.0.1	localhost
::1	localhost ip6-localhost ip6-loopback
fe00::0	ip6-localnet
ff00::0	ip6-mcastprefix
ff02::1	ip6-allnodes
ff02::2	ip6-allrouters
`

func (b *bundle) hosts() (string, error) {
	var out strings.Builder
	if b.spec.Network.Mode == "host" {
		host, _ := os.ReadFile("/etc/hosts")
		out.Write(host)
	} else {
		out.WriteString(localHosts)
	}
	if b.ip != "" {
		fmt.Fprintf(&out, "%s\t%s\n", b.ip, b.hostname())
	}
	for _, l := range b.spec.Network.Links {
		id, alias, _ := strings.Cut(l, ":")
		a, err := b.runtime.opts.Networks.Find(id)
		if err != nil {
			return "", fmt.Errorf("link to %s: %w", alias, err)
		}
		fmt.Fprintf(&out, "%s\t%s\n", a.IP, alias)
	}
	for _, h := range b.spec.ExtraHosts {
		name, ip, ok := strings.Cut(h, ":")
		if !ok {
			return "", fmt.Errorf("extra host %q is not name:address", h)
		}
		fmt.Fprintf(&out, "%s\t%s\n", ip, name)
	}
	return out.String(), nil
}

// resolvConf returns the machine's resolv.conf, in which the spec's settings replace the machine's. Name servers on the machine's loopback
// can't be reached from another network; systemd keeps the real ones in a separate file.
func (b *bundle) resolvConf() (string, error) {
	host, err := os.ReadFile("/etc/resolv.conf")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if strings.Contains(string(host), "nameserver 127.0.0.53") && b.spec.Network.Mode != "host" {
		if upstream, err := os.ReadFile("/run/systemd/resolve/resolv.conf"); err == nil {
			host = upstream
		}
	}
	var out strings.Builder
	if search := strings.Join(b.spec.DNSSearch, " "); search != "" && search != "." { // a dot alone means none
		fmt.Fprintf(&out, "search %s\n", search)
	}
	for _, ip := range b.spec.DNS {
		fmt.Fprintf(&out, "nameserver %s\n", ip)
	}
	for line := range strings.Lines(string(host)) {
		if b.keeps(strings.Fields(line)) {
			out.WriteString(strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	return out.String(), nil
}

// keeps reports whether the container's resolv.conf keeps a line of the machine's.
func (b *bundle) keeps(line []string) bool {
	if len(line) < 2 {
		return false
	}
	switch line[0] {
	case "nameserver":
		loopback := net.ParseIP(line[1]).IsLoopback() && b.spec.Network.Mode != "host"
		return len(b.spec.DNS) == 0 && !loopback
	case "search", "domain":
		return len(b.spec.DNSSearch) == 0
	}
	return line[0] == "options" || line[0] == "sortlist"
}
