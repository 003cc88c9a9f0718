package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTablesMatchBotocore compares the tables with those that the installed botocore's models give. A few lines may differ, because
// AWS changes its models, and the tables may come from another version of botocore.
func TestTablesMatchBotocore(t *testing.T) {
	compared := 0
	for _, s := range services {
		if s.constraints == "" {
			continue
		}
		compared++
		kept, err := os.ReadFile(filepath.Join("..", s.path("constraints.txt")))
		if err != nil {
			t.Fatal(err)
		}
		made, _ := constraints(s.constraints)
		want := map[string]bool{}
		for line := range strings.Lines(string(made)) {
			want[line] = true
		}
		var unknown []string
		lines := slices.Collect(strings.Lines(string(kept)))
		for _, line := range lines {
			if !want[line] {
				unknown = append(unknown, line)
			}
		}
		if len(lines) < 20 || len(unknown)*20 > len(lines) {
			t.Errorf(
				"%d of the %d lines of %s are not botocore's, run go generate ./internal/wire: %q", len(unknown), len(lines), s.folder,
				unknown,
			)
		}
	}
	if compared < 5 {
		t.Errorf("compared only %d tables", compared)
	}
}

// TestConstraintsOfAModel makes the table of a model that has one shape of each kind.
func TestConstraintsOfAModel(t *testing.T) {
	shapes := map[string]constraint{
		"In": {Type: "structure", Required: []string{"name"}, Members: map[string]struct{ Shape string }{
			"name":  {"Name"},
			"free":  {"Free"},
			"again": {"In"},
			"list":  {"List"},
			"map":   {"Map"},
			"odd":   {"Odd"},
			"count": {"Count"},
			"blob":  {"Blob"},
			"kind":  {"Kind"},
		}},
		"Name":  {Type: "string", Min: "1", Max: "5", Pattern: "[a-z]+", Sensitive: true},
		"Free":  {Type: "string"},
		"Odd":   {Type: "string", Pattern: "(?!a)b"},
		"List":  {Type: "list", Max: "2", Member: struct{ Shape string }{"Name"}},
		"Count": {Type: "integer", Min: "0"},
		"Kind":  {Type: "string", Enum: []string{"A", "B"}},
		"Map":   {Type: "map", Key: struct{ Shape string }{"Free"}, Value: struct{ Shape string }{"Name"}},
		"Blob":  {Type: "blob", Max: "9"},
	}
	w := &constraintWriter{model: &constrained{Shapes: shapes}, wanted: map[string]bool{}, lines: map[string]string{}}
	w.write("DoInput", "In")
	want := map[string]string{
		"DoInput": "{\tagain:In\tblob:Blob\tcount:Count\tkind:Kind\tlist:List\tmap:Map\tname!:Name\todd:Odd",
		"In":      "{\tagain:In\tblob:Blob\tcount:Count\tkind:Kind\tlist:List\tmap:Map\tname!:Name\todd:Odd",
		"Name":    "~\"\t1\t5\t[a-z]+",
		"Free":    "",
		"Odd":     "\"",
		"Count":   "#\t0\t",
		"Blob":    "*\t\t9",
		"Kind":    "=\tA\tB",
		"List":    "[\t\t2\tName",
		"Map":     "%\t\t\t\tName",
	}
	if !maps.Equal(w.lines, want) {
		t.Errorf("got %q", w.lines)
	}
	if !slices.Equal(w.leftOut, []string{"(?!a)b"}) {
		t.Errorf("left out: %q", w.leftOut)
	}
}
