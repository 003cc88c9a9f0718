// Package cmd holds the programs; its test says what they must not link.
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

// program is a program of ours, and what it must not be made of.
type program struct {
	path    string
	cgo     string // CGO_ENABLED
	most    int64  // the most bytes that its file may have, stripped as the Makefile does
	imports []rule // packages, each with all below it
	links   []rule // what the linker must leave out
}

// byName stands for any function in which the linker sees that methods are found by names that only a run knows.
const byName = "<ReflectMethod>"

// rule is something that a program must not have, and why.
type rule struct{ name, because string }

const keepsAllMethods = "it finds methods by names that only a run knows, so the linker keeps every exported method of every type: 14 MB of the AWS SDK's"

var pintle = program{
	path: "./pintle",
	cgo:  "1",
	imports: []rule{
		{"gonum.org", "a plot is a hundred lines of SVG; this brings fonts, a PDF writer and LaTeX: 7 MB"},
		{"github.com/alecthomas/kong", keepsAllMethods},
		{"html/template", keepsAllMethods},
		{"net/rpc", keepsAllMethods},
		{"testing", "it defines flags, and what only tests need is in files of tests"},
		{"net/http/pprof", "whoever imports it serves it, to everybody"},
	},
}

var shim = program{
	path: "./pintle-shim",
	cgo:  "0",
	most: 2e6, // as many of its pages are resident, beside each container
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

// TestImports looks at the packages that a program is made of: each is initialized at each start, used or not.
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

// forbids finds the rule that an import breaks. Our own packages have rules of their own, in internal/house_test.go.
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

// TestLinks looks at what the linker keeps, and at how large the file is.
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

// TestLinkSees: what the rules are against is seen where it is.
func TestLinkSees(t *testing.T) {
	_, linked := link(t, "./testdata/byname", "0")
	for _, name := range []string{byName, "text/template.(*Template).execute", "reflect.Value.Call"} {
		if !linked[name] {
			t.Errorf("a program that has %s does not show it", name)
		}
	}
}

// link links a program as the Makefile does, and returns its size and all that is in it.
func link(t *testing.T, path, cgo string) (size int64, linked map[string]bool) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	// Package main is compiled with a flag of its own, which does nothing here: go build keeps what the linker has said of a package
	// main, and would say it again in the next build without -dumpdep.
	cmd := exec.Command("go", "build", "-trimpath", "-gcflags", "-e", "-ldflags", "-s -w -dumpdep", "-o", file, path)
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
