package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// struckOver is how a terminal is told of bold and underlined letters.
var struckOver = regexp.MustCompile(".\x08")

// TestManualPages: each command and topic has a page, which groff sets without a warning, and which says what help says.
func TestManualPages(t *testing.T) {
	if _, err := exec.LookPath("groff"); err != nil {
		t.Fatal("this test needs Debian's groff: ", err)
	}
	root, dir := newRoot(), t.TempDir()
	if err := writePages(root, dir); err != nil {
		t.Fatal(err)
	}
	set := func(page string) string {
		t.Helper()
		cmd := exec.Command("groff", "-ww", "-man", "-Tutf8", "-P-c", "-rLL=200n", filepath.Join(dir, page))
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil || said.String() != "" {
			t.Fatalf("%s: %v: %s", page, err, &said)
		}
		return strings.Join(strings.Fields(struckOver.ReplaceAllString(string(out), "")), " ")
	}
	each(root, func(cmd *cobra.Command) {
		if cmd.Hidden || cmd.HasParent() && !cmd.IsAvailableCommand() {
			return
		}
		shown := set(pageName(cmd) + ".1")
		if want := strings.Join(strings.Fields(cmd.Short), " "); !strings.Contains(shown, want) {
			t.Errorf("the page of %s doesn't say %q: %s", cmd.CommandPath(), want, shown)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(shown, "--"+f.Name) {
				t.Errorf("the page of %s doesn't have --%s", cmd.CommandPath(), f.Name)
			}
		})
	})
	for _, topic := range topics {
		shown := set("pintle-" + topic.name + ".7")
		last := strings.Fields(topic.text)
		if want := strings.Join(last[len(last)-5:], " "); !strings.Contains(shown, want) {
			t.Errorf("%s doesn't end with %q: %s", topic.name, want, shown)
		}
	}
}
