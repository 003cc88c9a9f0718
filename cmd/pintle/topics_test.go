package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

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

// TestHelpWidth: at 80 columns no line of a verb's help is longer, but for a word that is, and descriptions of flags have 45 of them at least.
func TestHelpWidth(t *testing.T) {
	described := 0
	each(newRoot(), func(cmd *cobra.Command) {
		var out bytes.Buffer
		writeHelp(&out, cmd, 80)
		_, flags, _ := strings.Cut(out.String(), "\nFlags:\n")
		for line := range strings.Lines(flags) {
			words := strings.Fields(line)
			if utf8.RuneCountInString(line) > 81 && len(words) > 1 {
				t.Errorf("%s: %q is too long", cmd.CommandPath(), line)
			}
			if indent := len(line) - len(strings.TrimLeft(line, " ")); indent > 35 {
				t.Errorf("%s: %q leaves a description %d columns", cmd.CommandPath(), line, 80-indent)
			} else if indent > 10 {
				described++
			}
		}
	})
	if described < 100 {
		t.Errorf("only %d lines go on with a description", described)
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
