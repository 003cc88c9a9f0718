package firelens

import (
	"fmt"
	"strings"
)

// socket is where a log router takes the other containers' output.
const socket = "/var/run/fluent.sock"

// defaultBuffer is how much a router without a memory limit may have in memory, in MiB. Others may have half of their memory.
const defaultBuffer = 25

// fluentBit writes https://docs.fluentbit.io/manual/administration/configuring-fluent-bit/classic-mode
var fluentBit = dialect{
	path: "/fluent-bit/etc/fluent-bit.conf", all: "*", output: "Name", include: "@INCLUDE", env: "${%s}",
	inputs: func(r *Router) []section {
		buffer := r.MemoryMiB / 2
		if buffer == 0 {
			buffer = defaultBuffer
		}
		out := []section{{name: "INPUT", options: [][2]string{
			{"Name", "forward"}, {"unix_path", socket}, {"Mem_Buf_Limit", fmt.Sprintf("%dMB", buffer)},
		}}}
		if address := r.listen(); address != "" {
			out = append(out,
				section{name: "INPUT", options: [][2]string{{"Name", "forward"}, {"Listen", address}, {"Port", Port}}},
				// What a container's health check sends here proves that the router runs, and isn't a log.
				section{name: "INPUT", options: [][2]string{
					{"Name", "tcp"}, {"Tag", "firelens-healthcheck"}, {"Listen", "127.0.0.1"}, {"Port", "8877"},
				}},
				section{name: "OUTPUT", options: [][2]string{{"Name", "null"}, {"Match", "firelens-healthcheck"}}},
			)
		}
		return out
	},
	grep: func(key, tag, pattern string) section {
		return section{name: "FILTER", options: [][2]string{{"Name", "grep"}, {"Match", tag}, {key, "log " + pattern}}}
	},
	record: func(fields [][2]string) section {
		s := section{name: "FILTER", options: [][2]string{{"Name", "record_modifier"}, {"Match", "*"}}}
		for _, f := range fields {
			s.options = append(s.options, [2]string{"Record", f[0] + " " + f[1]})
		}
		return s
	},
	send: func(plugin, tag string, options [][2]string) section {
		return section{name: "OUTPUT", options: append([][2]string{{"Name", plugin}, {"Match", tag}}, options...)}
	},
	write: func(b *strings.Builder, s section, _ string) {
		fmt.Fprintf(b, "[%s]\n", s.name)
		for _, o := range s.options {
			fmt.Fprintf(b, "    %s %s\n", o[0], o[1])
		}
		b.WriteByte('\n')
	},
}

// fluentd writes https://docs.fluentd.org/configuration/config-file
var fluentd = dialect{
	path: "/fluentd/etc/fluent.conf", all: "**", output: "@type", include: "@include", env: `"#{ENV['%s']}"`,
	inputs: func(r *Router) []section {
		out := []section{{name: "source", options: [][2]string{{"@type", "unix"}, {"path", socket}}}}
		if address := r.listen(); address != "" {
			out = append(out, section{name: "source", options: [][2]string{{"@type", "forward"}, {"bind", address}, {"port", Port}}})
		}
		return out
	},
	grep: func(key, tag, pattern string) section {
		part := section{name: strings.ToLower(key), options: [][2]string{{"key", "log"}, {"pattern", pattern}}}
		if key == "Regex" {
			part.name = "regexp"
		}
		return section{name: "filter " + tag, options: [][2]string{{"@type", "grep"}}, parts: []section{part}}
	},
	record: func(fields [][2]string) section {
		return section{
			name: "filter **", options: [][2]string{{"@type", "record_transformer"}}, parts: []section{{name: "record", options: fields}},
		}
	},
	send: func(plugin, tag string, options [][2]string) section {
		return section{name: "match " + tag, options: append([][2]string{{"@type", plugin}}, options...)}
	},
	write: writeFluentd,
}

func writeFluentd(b *strings.Builder, s section, indent string) {
	fmt.Fprintf(b, "%s<%s>\n", indent, s.name)
	for _, o := range s.options {
		fmt.Fprintf(b, "%s    %s %s\n", indent, o[0], o[1])
	}
	for _, part := range s.parts {
		writeFluentd(b, part, indent+"    ")
	}
	kind, _, _ := strings.Cut(s.name, " ")
	fmt.Fprintf(b, "%s</%s>\n", indent, kind)
}
