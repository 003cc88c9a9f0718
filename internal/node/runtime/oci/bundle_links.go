package oci

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/pintle/pintle/internal/node/runtime"
)

// linkVariables returns the variables that tell of linked containers, as Docker's links have them: their names, ports and environments.
func (b *bundle) linkVariables() ([]string, error) {
	var out []string
	for _, l := range b.spec.Network.Links {
		id, alias, _ := strings.Cut(l, ":")
		_, spec, err := b.runtime.containers.Open(id)
		if err != nil {
			return nil, fmt.Errorf("link to %s: %w", alias, err)
		}
		a, err := b.runtime.opts.Networks.Find(id)
		if err != nil {
			return nil, fmt.Errorf("link to %s: %w", alias, err)
		}
		img, err := b.runtime.images.Get(spec.Image)
		if err != nil {
			return nil, err
		}
		prefix := strings.ToUpper(strings.ReplaceAll(alias, "-", "_"))
		out = append(out, prefix+"_NAME=/"+b.spec.ID+"/"+alias)
		out = append(out, portVariables(prefix, a.IP, spec.Network.Ports)...)
		for _, v := range runtime.Environment(img.Config.Env, spec.Env) {
			if !strings.HasPrefix(v, "PATH=") && !strings.HasPrefix(v, "HOME=") {
				out = append(out, prefix+"_ENV_"+v)
			}
		}
	}
	return out, nil
}

// portVariables tells of each port, and of the first one also without its number.
func portVariables(prefix, ip string, ports []runtime.Port) []string {
	ports = slices.Clone(ports)
	sort.Slice(ports, func(i, j int) bool {
		x, y := ports[i], ports[j]
		return cmp.Or(cmp.Compare(x.Protocol, y.Protocol), cmp.Compare(x.ContainerPort, y.ContainerPort)) < 0
	})
	var out []string
	for i, p := range ports {
		url := fmt.Sprintf("%s://%s:%d", p.Protocol, ip, p.ContainerPort)
		if i == 0 {
			out = append(out, prefix+"_PORT="+url)
		}
		name := fmt.Sprintf("%s_PORT_%d_%s", prefix, p.ContainerPort, strings.ToUpper(p.Protocol))
		out = append(out, name+"="+url, name+"_ADDR="+ip, fmt.Sprintf("%s_PORT=%d", name, p.ContainerPort), name+"_PROTO="+p.Protocol)
	}
	return out
}
