// Package internal holds the house; its tests hold the house's rules.
package internal

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/pintle/pintle/internal/"

// ground is what belongs to no service. A package of the ground knows only what its line allows.
var ground = map[string]rule{
	"account":      {[]string{"account"}, "every service has one in its options"},
	"acs":          {nil, "both ends of the node protocol use it, and one of them may be Amazon's"},
	"awsname":      {nil, "the wire uses it, and who stands in for AWS on nodes"},
	"certificate":  {[]string{"file"}, "it keeps an authority's files, and knows nothing of who connects"},
	"backup":       {nil, "stores say by it which files they have, and it knows none of them"},
	"checksum":     {nil, "it computes, and no more"},
	"datachannel":  {[]string{"datachannel"}, "nodes and the client of execute-command use it, and either may be AWS's"},
	"disk":         {nil, "it is below all stores"},
	"delivery":     {[]string{"awsname"}, "it tells what is owed and knows neither what it means nor where it is kept"},
	"exposition":   {nil, "nodes use it, and a program in containers on AWS"},
	"file":         {nil, "it is below all stores"},
	"groupcommit":  {nil, "it is below all stores"},
	"histogram":    {nil, "whatever takes time tells one, nodes too"},
	"instancetype": {nil, "it is data"},
	"plaintext":    {nil, "nodes use it, too"},
	"pattern":      {nil, "every process links it, a shim beside each container too"},
	"sdkhttp":      {nil, "whoever calls a control plane through the SDK uses it"},
	"shellword":    {nil, "it computes, and no more"},
	"sqlitefile":   {[]string{"backup", "file", "disk"}, "it is below the stores that keep their rows in SQLite"},
	"state":        {[]string{"state", "store", "delivery"}, "rows must not depend on who reads them"},
	"store":        {[]string{"store", "backup", "groupcommit", "file", "disk", "sqlitefile"}, "the engine knows no rows"},
	"trace":        {nil, "it tells a collector of what services and loops do, and knows none of them"},
	"transparent":  {[]string{"awsname", "certificate", "file", "twoway"}, "it stands in for AWS in front of any control plane"},
	"twoway":       {nil, "load balancers and nodes use it"},
	"vault":        {[]string{"vault", "file"}, "it encrypts for services and knows none of them"},
	"wal":          {[]string{"wal", "backup", "file", "disk"}, "it keeps bytes for stores and knows none of them"},
	"wire":         {[]string{"wire", "awsname", "checksum", "disk", "histogram"}, "HTTP becomes calls without knowing what they do"},
}

// loans is what a street may know of another one's besides what is pure there, and why. A street is one of AWS's services: a folder with
// an api.go, or one in noAPI. It knows the ground, itself, and the pure packages of other streets.
var loans = map[string][]loan{
	"appautoscaling": {
		{"scaling/triggers", "both scalers follow their alarms by it, and it asks CloudWatch as any client would"},
		{"cloudwatch/metrics", "the fast reaction reads metrics up to now, which no API of AWS's does"},
	},
	"autoscaling": {{"scaling/triggers", "as appautoscaling"}, {"cloudwatch/metrics", "as appautoscaling"}},
	"cloudwatch":  {{"sqs/queues", "queues are metered where they are kept: by the second, which no API of AWS's tells"}},
	"schedules":   {{"events/targets", "rules and schedules send to the same targets in the same way"}},
	"scaling":     {{"cloudwatch/metrics", "as appautoscaling"}, {"cloudwatch/metricquery", "as appautoscaling"}},
}

// noAPI are streets without an api.go of their own.
var noAPI = map[string]string{
	"scaling": "it's the maths of both Auto Scaling services",
}

// above is what puts streets together, and otherSide what runs on nodes and in containers.
var above = map[string]rule{
	"bootstrap": {[]string{"cloudformation/cfninit"}, "it runs on machines that aren't nodes yet"},
	"console":   {[]string{"console", "account", "certificate", "exposition", "histogram", "state", "acs", "datachannel", "wire", "ecs/nodelink", "ecs/enrollment", "ecs/explain", "scaling/hindsight"}, "it shows rows and what nodes tell, and asks no service's loops"},
	"plane":     {[]string{"*"}, "it puts everything together"},
	"sim": {
		[]string{
			"plane",
			"state",
			"instancetype",
			"scaling",
			"cloudwatch/alarms",
			"cloudwatch/metrics",
			"store",
			"wire/validation",
			"appautoscaling",
		},
		"it is plane with a clock that jumps, so it steps the loops itself",
	},
	"node":    {[]string{"node", "acs", "datachannel", "instancetype", "file", "pattern", "plaintext", "exposition", "histogram", "awsname", "transparent", "twoway"}, "it speaks to any ECS, so it knows nothing of this one"},
	"sidecar": {[]string{"exposition"}, "it runs on AWS, too"},
	"top":     {nil, "package main says what it shows"},
	"worker":  {nil, "it runs on AWS, too"},
}

// rule says what of ours a package may import, and why no more.
type rule struct {
	mayKnow []string
	because string
}

// loan is a package that is not pure and that another street may know all the same.
type loan struct{ name, because string }

// pkg is one of our packages.
type pkg struct {
	ImportPath string
	name       string // its path in internal
	imports    []string
	pure       bool // its comment says that it is
}

// TestWhoKnowsWhom checks every package's imports against the rules.
func TestWhoKnowsWhom(t *testing.T) {
	all := packages(t)
	pure := map[string]bool{}
	for _, p := range all {
		pure[p.name] = p.pure
	}
	for _, p := range all {
		top, _, _ := strings.Cut(p.name, "/")
		allows, because := allowed(top, pure)
		if allows == nil {
			t.Errorf("package %s stands in no street, not on the ground and not above: %s", p.name, because)
			continue
		}
		for _, other := range p.imports {
			if name, ours := strings.CutPrefix(other, module); ours && !allows(name) {
				t.Errorf("%s imports %s, which it may not know: %s", p.name, name, because)
			}
		}
	}
}

// allowed says what packages below a folder may know, and why; nil where the folder is in no rule.
func allowed(top string, pure map[string]bool) (allows func(name string) bool, because string) {
	if r, ok := ground[top]; ok {
		return r.allows, r.because
	}
	if r, ok := above[top]; ok {
		return r.allows, r.because
	}
	if _, err := os.Stat(top + "/api.go"); err != nil && noAPI[top] == "" {
		return nil, "a folder is a service of AWS's, or a noun of the design; layers such as service, control and decide cut every service in pieces"
	}
	return func(name string) bool {
		other, _, _ := strings.Cut(name, "/")
		_, onGround := ground[other]
		lent := slices.ContainsFunc(loans[top], func(l loan) bool { return l.name == name })
		return other == top || pure[name] || lent || onGround && (other != "wire" || name == "wire/call" || name == "wire/model")
	}, "a street knows the ground (of wire only call, and model, by which it describes itself), itself and what is pure in others; another service is asked through the SDK's interface"
}

func (r rule) allows(name string) bool {
	return slices.ContainsFunc(r.mayKnow, func(a string) bool { return a == "*" || name == a || strings.HasPrefix(name, a+"/") })
}

// impure is what a pure package must not import: with any of these its answers could depend on more than its arguments.
var impure = map[string]string{
	"os": "files and the environment", "net": "the network", "net/http": "the network", "io/fs": "files", "os/exec": "processes",
	"context": "whoever cancels", "sync": "other goroutines", "log/slog": "a log", "crypto/rand": "chance", "database/sql": "a store",
}

// TestPureIsPure: a package whose comment says "It is pure" gets everything that it looks at as arguments: no clock, no chance, no file,
// no network, no store.
func TestPureIsPure(t *testing.T) {
	found := 0
	pure := map[string]bool{}
	all := packages(t)
	for _, p := range all {
		pure[p.name] = p.pure
	}
	for _, p := range all {
		if !p.pure {
			continue
		}
		found++
		for _, other := range p.imports {
			if why, bad := impure[other]; bad {
				t.Errorf("%s says that it is pure and imports %s: %s", p.name, other, why)
			}
			if name, ours := strings.CutPrefix(other, module); ours && !pure[name] {
				t.Errorf("%s says that it is pure and imports %s, which is not", p.name, name)
			}
		}
		for _, call := range []string{"time.Now(", "time.Since(", "time.After(", "rand.Int", "rand.N(", "rand.Float"} {
			if where := uses(t, p.name, call); where != "" {
				t.Errorf("%s says that it is pure and calls %s)", where, call)
			}
		}
	}
	if found < 12 {
		t.Errorf("only %d packages say that they are pure", found)
	}
}

// uses says which file of a package contains a text, if any does.
func uses(t *testing.T, name, text string) (where string) {
	each(t, name, func(file string, f *ast.File, set *token.FileSet) {
		ast.Inspect(f, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok {
				if s, ok := c.Fun.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && strings.HasPrefix(x.Name+"."+s.Sel.Name+"(", text) {
						where = fmt.Sprint(set.Position(c.Pos()))
					}
				}
			}
			return true
		})
	})
	return where
}

// TestNames: package names are unique, so that imports need no alias, and none is a word for a layer or for anything.
func TestNames(t *testing.T) {
	seen := map[string]string{}
	for _, p := range packages(t) {
		base := path.Base(p.name)
		if other, twice := seen[base]; twice && base != "gen" {
			t.Errorf("%s and %s have one name", p.name, other)
		}
		seen[base] = p.name
		if slices.Contains([]string{"util", "utils", "common", "types", "helpers", "manager", "service", "control", "decide"}, base) {
			t.Errorf("%s does not say what is inside", p.name)
		}
	}
}

// maxLines is how long a function may be.
const maxLines = 60

// TestFunctionsFitAScreen: no function is longer than a screen.
func TestFunctionsFitAScreen(t *testing.T) {
	for _, p := range packages(t) {
		each(t, p.name, func(_ string, f *ast.File, set *token.FileSet) {
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || fn.Body == nil {
					continue
				}
				if n := set.Position(fn.End()).Line - set.Position(fn.Pos()).Line + 1; n > maxLines {
					t.Errorf("%s: %s has %d lines", set.Position(fn.Pos()), fn.Name.Name, n)
				}
			}
		})
	}
}

// each parses a package's files, but for tests and what is generated.
func each(t *testing.T, name string, visit func(file string, f *ast.File, set *token.FileSet)) {
	t.Helper()
	set := token.NewFileSet()
	found, err := parser.ParseDir(set, name, func(i fs.FileInfo) bool {
		return !strings.HasSuffix(i.Name(), "_test.go") && !strings.HasSuffix(i.Name(), "_gen.go")
	}, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range found {
		for file, f := range p.Files {
			visit(file, f, set)
		}
	}
}

// saysPure is how a package comment promises it.
var saysPure = regexp.MustCompile(`It('s|\s+is)\s+pure`)

// packages are all of ours below internal.
func packages(t *testing.T) (out []pkg) {
	t.Helper()
	list, err := exec.Command("go", "list", "-f", `{{.ImportPath}}{{"\t"}}{{join .Imports " "}}{{"\t"}}{{.Doc}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		name, ok := strings.CutPrefix(fields[0], module)
		if !ok {
			continue
		}
		p := pkg{ImportPath: fields[0], name: name, imports: strings.Fields(fields[1])}
		each(t, name, func(_ string, f *ast.File, _ *token.FileSet) {
			p.pure = p.pure || f.Doc != nil && saysPure.MatchString(f.Doc.Text())
		})
		out = append(out, p)
	}
	if len(out) < 40 {
		t.Fatalf("only %d packages were found", len(out))
	}
	return out
}
