package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// each calls do with a command and all below it.
func each(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, sub := range cmd.Commands() {
		each(sub, do)
	}
}

// TestTopics: pintle help lists the topics and shows each, in lines of the terminal's width; no command has a topic's name, and the documents
// that topics refer to are there.
func TestTopics(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	show := func(args ...string) string {
		t.Helper()
		root, out := newRoot(), new(bytes.Buffer)
		root.SetOut(out)
		root.SetArgs(args)
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return out.String()
	}
	list := show("help")
	document := regexp.MustCompile(`(docs|examples)/[a-z0-9./-]+`)
	for _, topic := range topics {
		if !strings.Contains(list, "\n  "+topic.name+" ") {
			t.Errorf("%s isn't listed", topic.name)
		}
		text := show("help", topic.name)
		for line := range strings.Lines(text) {
			if len(line) > 81 {
				t.Errorf("%s: %q is too long", topic.name, line)
			}
		}
		if found := document.FindAllString(text, -1); len(found) == 0 {
			t.Errorf("%s refers to no document", topic.name)
		} else {
			for _, path := range found {
				if _, err := os.Stat(filepath.Join("../..", path)); err != nil {
					t.Errorf("%s: %v", topic.name, err)
				}
			}
		}
		for _, cmd := range newRoot().Commands() {
			if cmd.Name() == topic.name {
				t.Errorf("%s is a command, too", topic.name)
			}
		}
	}
}

// TestEnvironmentTopic: every variable that a flag reads is in the topic, and every flag that the topics name is one.
func TestEnvironmentTopic(t *testing.T) {
	read, flags := 0, map[string]bool{"--help": true}
	each(newRoot(), func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			flags["--"+flag.Name] = true
			for _, variable := range flag.Annotations[envAnnotation] {
				read++
				if !regexp.MustCompile(`\b` + variable + `\b`).MatchString(environmentText) {
					t.Errorf("%s --%s reads %s, which the topic doesn't have", cmd.CommandPath(), flag.Name, variable)
				}
			}
		})
	})
	if read == 0 {
		t.Error("no flag reads a variable")
	}
	for _, topic := range topics {
		for _, name := range regexp.MustCompile(`--[a-z-]+`).FindAllString(topic.text, -1) {
			if !flags[name] {
				t.Errorf("%s: there is no flag %s", topic.name, name)
			}
		}
	}
}
