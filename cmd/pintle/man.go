package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// newMan makes the verb that writes manual pages of what --help and pintle help show, for packages.
func newMan(root *cobra.Command) *cobra.Command {
	var cmd *cobra.Command
	cmd = newVerb("man DIRECTORY", "Write manual pages.", cobra.ExactArgs(1), func(context.Context) error {
		return writePages(root, cmd.Flags().Arg(0))
	})
	cmd.Hidden = true
	return cmd
}

// writePages writes a page for each command, and one for each topic.
func writePages(root *cobra.Command, directory string) error {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return err
	}
	pages := map[string]string{}
	addPages(pages, root)
	for _, t := range topics {
		pages["pintle-"+t.name+".7"] = pageOf(t)
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func addPages(pages map[string]string, cmd *cobra.Command) {
	pages[pageName(cmd)+".1"] = commandPage(cmd)
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			addPages(pages, sub)
		}
	}
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func commandPage(cmd *cobra.Command) string {
	var page bytes.Buffer
	short, more, _ := strings.Cut(cmd.Short, "\n")
	heading(&page, pageName(cmd), 1, short)
	section(&page, "SYNOPSIS")
	fmt.Fprintf(&page, ".B %s\n", roff(cmd.UseLine()))
	section(&page, "DESCRIPTION")
	paragraphs(&page, short+"\n"+more+"\n\n"+cmd.Long)
	if cmd.HasAvailableSubCommands() {
		section(&page, "COMMANDS")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&page, ".TP\n.BR %s (1)\n%s\n", roff(pageName(sub)), roffLine(sub.Short))
			}
		}
	}
	section(&page, "OPTIONS")
	for line := range strings.Lines(cmd.LocalFlags().FlagUsagesWrapped(0)) {
		flag, usage := cutFlag(line)
		fmt.Fprintf(&page, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(flag)), roffLine(usage))
	}
	section(&page, "SEE ALSO")
	if cmd.HasParent() {
		fmt.Fprintf(&page, ".BR %s (1)\n", roff(pageName(cmd.Parent())))
		return page.String()
	}
	for i, t := range topics {
		end := ","
		if i == len(topics)-1 {
			end = ""
		}
		fmt.Fprintf(&page, ".BR %s (7)%s\n", roff("pintle-"+t.name), end)
	}
	return page.String()
}

func pageOf(t topic) string {
	var page bytes.Buffer
	heading(&page, "pintle-"+t.name, 7, t.short)
	section(&page, "DESCRIPTION")
	paragraphs(&page, t.text)
	section(&page, "SEE ALSO")
	fmt.Fprint(&page, ".BR pintle (1)\n")
	return page.String()
}

func heading(w io.Writer, name string, part int, short string) {
	today := time.Now().UTC().Format(time.DateOnly)
	fmt.Fprintf(w, ".TH %s %d %s \"pintle %s\" Pintle\n.ad l\n", roff(strings.ToUpper(name)), part, today, roff(version))
	section(w, "NAME")
	fmt.Fprintf(w, "%s \\- %s\n", roff(name), roff(strings.TrimSuffix(short, ".")))
}

func section(w io.Writer, name string) { fmt.Fprintf(w, ".SH %s\n", name) }

// paragraphs writes a text as help shows it: lines that begin with a space stay as they are.
func paragraphs(w io.Writer, text string) {
	verbatim := false
	set := func(is bool) {
		if is != verbatim {
			fmt.Fprint(w, map[bool]string{true: ".PP\n.nf\n", false: ".fi\n"}[is])
		}
		verbatim = is
	}
	between := false
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			between = true
			continue
		}
		set(line[0] == ' ' || line[0] == '\t')
		if between && !verbatim {
			fmt.Fprint(w, ".PP\n")
		}
		between = false
		fmt.Fprintln(w, roffLine(strings.ReplaceAll(line, "\t", "    ")))
	}
	set(false)
}

var roffEscapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "~", `\(ti`, "^", `\(ha`, "`", `\(ga`, "'", `\(aq`, `"`, `\(dq`)

// roff writes a text so that troff shows it as it is.
func roff(text string) string {
	var out strings.Builder
	for _, r := range roffEscapes.Replace(strings.ReplaceAll(text, "\n", " ")) {
		if r < utf8.RuneSelf {
			out.WriteRune(r)
			continue
		}
		fmt.Fprintf(&out, `\[u%04X]`, r)
	}
	return out.String()
}

// roffLine is roff for the beginning of a line, where a dot would be a request.
func roffLine(text string) string {
	if text = roff(text); strings.HasPrefix(text, ".") {
		return `\&` + text
	}
	return text
}
