package runtime

import (
	"slices"
	"strings"
)

// Environment joins lists of variables. If a name occurs twice, the last value counts: of two with one name, programs in C read the first.
func Environment(lists ...[]string) []string {
	var out []string
	at := map[string]int{}
	for _, v := range slices.Concat(lists...) {
		name, _, _ := strings.Cut(v, "=")
		if i, ok := at[name]; ok {
			out[i] = v
			continue
		}
		at[name] = len(out)
		out = append(out, v)
	}
	return out
}

// Visible returns a container's NVIDIA_VISIBLE_DEVICES, or "" if it keeps what it and its image ask for.
func (s *Spec) Visible() string {
	switch {
	case len(s.GPUs) > 0:
		return strings.Join(s.GPUs, ",")
	case len(s.MachineGPUs) > 0 && s.SimulatedGPUs:
		return strings.Join(s.MachineGPUs, ",")
	case len(s.MachineGPUs) > 0:
		return "all"
	case s.Privileged:
		return "" // it may look after all the machine's GPUs
	}
	return "void" // the NVIDIA runtime's word for none
}
