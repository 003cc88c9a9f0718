// Package firelens writes the configuration of a task's log router, Fluent Bit or Fluentd: where it takes the other containers' output,
// what it adds to that, and where it sends it. The engine calls it. It is pure.
package firelens

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Port is where a log router takes logs over TCP, in the network modes bridge and awsvpc.
const Port = "24224"

// Tag is the tag of a container's output.
func Tag(container, taskID string) string { return container + "-firelens-" + taskID }

// Router is a log router, and what its configuration is made of.
type Router struct {
	Type       string            // fluentbit or fluentd
	Options    map[string]string // of its firelensConfiguration
	MemoryMiB  int64             // of the container; 0 if it has no limit
	Mode       string            // the task's network mode
	Cluster    string            // its name
	TaskArn    string
	Definition string // family:revision
	InstanceID string // EC2's; may be ""
	// Routed has the options of the log driver awsfirelens, by container.
	Routed map[string]map[string]string
	// Secret has the names of the router's environment variables with the values of more options, by container and option.
	Secret map[string]map[string]string
}

// dialect is how a log router's configuration is written.
type dialect struct {
	path    string // of the configuration, in the container
	all     string // a wildcard for the rest of a tag
	output  string // the option that names an output's plugin
	include string
	env     string // how a value refers to an environment variable
	inputs  func(r *Router) []section
	grep    func(key, tag, pattern string) section
	record  func(fields [][2]string) section
	send    func(plugin, tag string, options [][2]string) section
	write   func(b *strings.Builder, s section, indent string)
}

// section is a part of a configuration.
type section struct {
	name    string // source, filter, match …, with a tag where the dialect puts it there
	options [][2]string
	parts   []section
}

var dialects = map[string]*dialect{"fluentbit": &fluentBit, "fluentd": &fluentd}

// dialect is nil if there is none of the router's type, which the control plane has checked.
func (r *Router) dialect() *dialect { return dialects[r.Type] }

// Path is where the log router looks for its configuration.
func (r *Router) Path() (string, error) {
	d := r.dialect()
	if d == nil {
		return "", fmt.Errorf("a log router of type %q", r.Type)
	}
	return d.path, nil
}

// The options of a container that aren't its output plugin's.
const (
	includePattern = "include-pattern"
	excludePattern = "exclude-pattern"
	bufferLimit    = "log-driver-buffer-limit" // the agent's buffer is the container's log on disk
)

// Config returns the configuration.
func (r *Router) Config() (string, error) {
	d := r.dialect()
	if d == nil {
		return "", fmt.Errorf("a log router of type %q", r.Type)
	}
	sections := d.inputs(r)
	var outputs []section
	for _, name := range slices.Sorted(maps.Keys(r.Routed)) {
		filters, output, err := d.route(name, r.Routed[name], r.Secret[name])
		if err != nil {
			return "", err
		}
		sections = append(sections, filters...)
		outputs = append(outputs, output...)
	}
	if on, err := strconv.ParseBool(cmp.Or(r.Options["enable-ecs-log-metadata"], "true")); on || err != nil {
		sections = append(sections, d.record(r.fields()))
	}
	var b strings.Builder
	for _, s := range sections {
		d.write(&b, s, "")
	}
	switch from := r.Options["config-file-type"]; from {
	case "":
	case "file":
		fmt.Fprintf(&b, "%s %s\n", d.include, r.Options["config-file-value"])
	default:
		return "", fmt.Errorf("config-file-type %q is not supported: only file is", from)
	}
	for _, s := range outputs {
		d.write(&b, s, "")
	}
	return b.String(), nil
}

// fields are what a router adds to each record.
func (r *Router) fields() [][2]string {
	out := [][2]string{{"ecs_cluster", r.Cluster}, {"ecs_task_arn", r.TaskArn}, {"ecs_task_definition", r.Definition}}
	if r.InstanceID != "" {
		out = append(out, [2]string{"ec2_instance_id", r.InstanceID})
	}
	return out
}

// key is what an option's name is made of.
var key = regexp.MustCompile(`^[^\s\[\]<>]+$`)

// route returns the filters and the output of one container's logs. Without options they may have an output in the user's own file.
func (d *dialect) route(container string, options, secret map[string]string) (filters, output []section, err error) {
	tag := container + "-firelens" + d.all
	var more [][2]string
	for _, name := range slices.Sorted(maps.Keys(options)) {
		value := options[name]
		if !key.MatchString(name) || strings.ContainsAny(value, "\r\n") {
			return nil, nil, fmt.Errorf("the log option %q of container %s has a line break, or a name that cannot be", name, container)
		}
		switch name {
		case d.output, bufferLimit:
		case includePattern:
			filters = append(filters, d.grep("Regex", tag, value))
		case excludePattern:
			filters = append(filters, d.grep("Exclude", tag, value))
		default:
			more = append(more, [2]string{name, value})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(secret)) {
		if !key.MatchString(name) {
			return nil, nil, fmt.Errorf("the secret log option %q of container %s has a name that cannot be", name, container)
		}
		more = append(more, [2]string{name, fmt.Sprintf(d.env, secret[name])})
	}
	switch plugin := options[d.output]; {
	case plugin != "":
		output = append(output, d.send(plugin, tag, more))
	case len(more) > 0:
		return nil, nil, fmt.Errorf("the log options of container %s lack %s, which names the output", container, d.output)
	}
	return filters, output, nil
}

// listen is the address at which a router takes logs over TCP, or "" if it shares the node's network or has none.
func (r *Router) listen() string {
	switch r.Mode {
	case "bridge":
		return "0.0.0.0"
	case "awsvpc":
		return "127.0.0.1"
	}
	return ""
}
