// Package cmd holds the programs. Its tests check what they must not link.
package cmd

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// program is one of our programs, and what it must not contain.
type program struct {
	path    string
	cgo     string // CGO_ENABLED
	most    int64  // the most bytes that its file may have, stripped as in the Makefile
	imports []rule // forbidden packages, each with all packages below it
	links   []rule // what the linker must leave out
}

// byName stands for all functions that the linker marks because they look up methods by names known only at run time.
const byName = "<ReflectMethod>"

// rule is something that a program must not have, and why.
type rule struct{ name, because string }

const keepsAllMethods = "it finds methods by names that only a run knows, so the linker keeps " +
	"every exported method of every type: 14 MB of the AWS SDK's"

const schemas = "the SDK's packages since the autumn of 2026 make schemas of all their shapes when the program starts, and keep every shape's " +
	"methods that read and write it by them: 2 MB in these four. The newest versions without them lack only ECR's replication backfills. Those of " +
	"the other services have more to lose"

var pintle = program{
	path: "./pintle",
	cgo:  "0",
	imports: []rule{
		{"gonum.org", "a plot is a hundred lines of SVG; this brings fonts, a PDF writer and LaTeX: 7 MB"},
		{"github.com/alecthomas/kong", keepsAllMethods},
		{"html/template", keepsAllMethods},
		{"github.com/aws/aws-sdk-go-v2/config", "it brings clients of single sign-on, of its tokens and of STS: 1.4 MB; awsconfig.go reads what we need"},
		{"github.com/aws/aws-sdk-go-v2/service/acm/schemas", schemas},
		{"github.com/aws/aws-sdk-go-v2/service/ecr/schemas", schemas},
		{"github.com/aws/aws-sdk-go-v2/service/eventbridge/schemas", schemas},
		{"github.com/aws/aws-sdk-go-v2/service/secretsmanager/schemas", schemas},
		{"github.com/aws/aws-sdk-go-v2/service/ssm/schemas", schemas},
		{"net/rpc", keepsAllMethods},
		{"github.com/prometheus", "it reads and writes protobuf, too: 0.7 MB; exposition has what we need"},
		{"google.golang.org/protobuf", "nothing here speaks it: 1.4 MB"},
		{"github.com/containerd/cgroups/v3/cgroup1", "its statistics are protobuf's, and it calls systemd over D-Bus: 2.5 MB; we read and write a dozen files"},
		{"github.com/containerd/cgroups/v3/cgroup2", "as cgroup1, and it brings a compiler of BPF"},
		{"testing", "it defines flags, and what only tests need is in files of tests"},
		{"net/http/pprof", "whoever imports it serves it, to everybody"},
	},
	most: 50e6, // docs/speed.md has the aim
	links: []rule{
		{byName, keepsAllMethods + "; go build -ldflags=-dumpdep tells which function it is"},
		{"text/template.(*Template).execute", keepsAllMethods + "; cobra imports it, for help texts that we write ourselves"},
	},
}

var shim = program{
	path: "./pintle-shim",
	cgo:  "0",
	most: 2e6, // about as much of it stays resident, beside each container
	imports: []rule{
		{"encoding", "with encoding/json the program is a third larger; what it writes is twenty lines by hand"},
		{"fmt", "it brings reflect, for messages that are put together with +"},
		{"reflect", "what it reads and writes is known when it is compiled"},
		{"regexp", "each expression is compiled at each start"},
		{"os/exec", "os.StartProcess forks a second time at its first use; syscall.ForkExec does not"},
		{"log", "it has nobody to log to"},
		{"net", "it talks to nobody"},
		{"crypto", "it keeps no secrets"},
		{"github.com", "a library costs its package variables at each start, beside each container"},
		{"golang.org", "as github.com"},
	},
	links: []rule{{"reflect.Value.Call", "as reflect"}, {byName, keepsAllMethods}},
}

// TestImports checks the packages that a program contains. Each is initialized at each start, used or not.
func TestImports(t *testing.T) {
	for _, p := range []program{pintle, shim} {
		cmd := exec.Command("go", "list", "-deps", p.path)
		cmd.Env = append(os.Environ(), "CGO_ENABLED="+p.cgo)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", p.path, err)
		}
		packages := strings.Fields(string(out))
		if !slices.Contains(packages, "github.com/pintle/pintle/internal/node/runtime/shim/program") {
			t.Errorf("%s is made of %q, and no shim", p.path, packages)
		}
		for _, name := range packages {
			if r, broken := p.forbids(name); broken {
				t.Errorf("%s imports %s: %s", p.path, name, r.because)
			}
		}
	}
}

// forbids returns the rule that an import breaks. internal/house_test.go has the rules for our own packages.
func (p program) forbids(name string) (rule, bool) {
	if strings.HasPrefix(name, "github.com/pintle/pintle/") {
		return rule{}, false
	}
	for _, r := range p.imports {
		if name == r.name || strings.HasPrefix(name, r.name+"/") {
			return r, true
		}
	}
	return rule{}, false
}

// TestLinks checks what the linker keeps, and how large the file is.
func TestLinks(t *testing.T) {
	for _, p := range []program{pintle, shim} {
		size, linked := link(t, p.path, p.cgo)
		if p.most > 0 && size > p.most {
			t.Errorf("%s has %d bytes, more than %d", p.path, size, p.most)
		}
		for _, r := range p.links {
			if linked[r.name] {
				t.Errorf("%s links %s: %s", p.path, r.name, r.because)
			}
		}
	}
}

// TestLinkSees: the checks notice what they forbid in a program that has it.
func TestLinkSees(t *testing.T) {
	_, linked := link(t, "./testdata/byname", "0")
	for _, name := range []string{byName, "text/template.(*Template).execute", "reflect.Value.Call"} {
		if !linked[name] {
			t.Errorf("a program that has %s does not show it", name)
		}
	}
}

// flags returns the Makefile's flags for the compiler, outlined, or for the linker, linked, so that sizes are those of what is shipped.
func flags(t *testing.T, target string) string {
	t.Helper()
	out, err := exec.Command("make", "-s", "-C", "..", target).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// link links a program as the Makefile does, and returns its size and all that the linker keeps.
func link(t *testing.T, path, cgo string) (size int64, linked map[string]bool) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	// The extra compiler flag for package main does nothing here. go build caches the linker's output for a package main, and
	// would print it again in the next build without -dumpdep.
	args := append([]string{"build", "-trimpath", "-gcflags", "-e"}, strings.Fields(flags(t, "outlined"))...)
	cmd := exec.Command("go", append(args, "-ldflags", flags(t, "linked")+" -dumpdep", "-o", file, path)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	var edges bytes.Buffer
	cmd.Stderr = &edges
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%.2000s", path, err, &edges)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	linked = map[string]bool{}
	for line := range strings.Lines(edges.String()) {
		_, to, isEdge := strings.Cut(strings.TrimSuffix(line, "\n"), " -> ")
		if !isEdge {
			continue
		}
		name, mark, _ := strings.Cut(to, " <")
		linked[name] = true
		if strings.Contains(mark, "ReflectMethod") {
			linked[byName] = true
		}
	}
	if !linked["main.main"] || len(linked) < 1000 {
		t.Fatalf("%s: the linker tells of %d symbols only, main.main %v", path, len(linked), linked["main.main"])
	}
	return info.Size(), linked
}
