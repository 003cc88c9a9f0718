package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// help is what --help shows.
func help(cmd *cobra.Command, _ []string) { writeHelp(cmd.OutOrStdout(), cmd, width()) }

// newHelp makes the verb help.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [command|topic]",
		Short: "Show what --help shows, or a topic.",
		RunE: func(_ *cobra.Command, args []string) error {
			if t, found := topicOf(args); found {
				t.write(root, width())
				return nil
			}
			cmd, rest, err := root.Find(args)
			if err != nil {
				return err
			}
			return refuseUnknown(cmd, rest)
		},
	}
}

// refuseUnknown shows a command's help, unless a word follows that is no command.
func refuseUnknown(cmd *cobra.Command, rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("unknown command %q for %q", rest[0], cmd.CommandPath())
	}
	return cmd.Help()
}

func writeHelp(w io.Writer, cmd *cobra.Command, columns int) {
	fmt.Fprintf(w, "Usage: %s\n", cmd.UseLine())
	fmt.Fprintf(w, "\n%s\n", wrap(cmd.Short, columns))
	if cmd.Long != "" {
		fmt.Fprintf(w, "\n%s\n", wrap(cmd.Long, columns))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprint(w, "\nCommands:\n")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				text := strings.ReplaceAll(wrap(sub.Short, columns-14), "\n", "\n"+strings.Repeat(" ", 14))
				fmt.Fprintf(w, "  %-12s%s\n", sub.Name(), text)
			}
		}
	}
	if !cmd.HasParent() {
		writeTopics(w)
	}
	fmt.Fprint(w, "\nFlags:\n")
	writeFlags(w, cmd.LocalFlags(), columns)
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\nRun \"%s <command> --help\" for more of a command.\n", cmd.CommandPath())
	}
	if !cmd.HasParent() {
		fmt.Fprint(w, "Run \"pintle help <topic>\" for a topic.\n")
	}
}

// writeFlags writes each flag with its description beside it. The flags have two fifths of the columns at most: the description of a
// longer one is below it, so that all have room.
func writeFlags(w io.Writer, set *pflag.FlagSet, columns int) {
	var names, usages []string
	beside := 0
	for line := range strings.Lines(set.FlagUsagesWrapped(0)) {
		name, usage := cutFlag(line)
		names, usages = append(names, name), append(usages, usage)
		beside = max(beside, len(name)+3)
	}
	beside = min(beside, columns*2/5)
	for i, name := range names {
		if len(name) > beside-2 {
			fmt.Fprintln(w, name)
			name = ""
		}
		usage := strings.ReplaceAll(wrap(usages[i], columns-beside), "\n", "\n"+strings.Repeat(" ", beside))
		fmt.Fprintf(w, "%-*s%s\n", beside, name, usage)
	}
}

// cutFlag splits a line of pflag's usages, which has three spaces at least between a flag and its description.
func cutFlag(line string) (name, usage string) {
	text := strings.TrimSpace(line)
	name, usage, _ = strings.Cut(text, "   ")
	return line[:strings.Index(line, text)] + name, strings.TrimSpace(usage)
}

// width returns how many columns help may use: the terminal's, within readable limits.
func width() int {
	columns, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if err != nil {
		size, err := unix.IoctlGetWinsize(int(os.Stdout.Fd()), unix.TIOCGWINSZ)
		if err != nil || size.Col == 0 {
			return 80
		}
		columns = int(size.Col)
	}
	return min(max(columns, 40), 140)
}

// wrap breaks paragraphs into lines of at most that many columns. Lines that begin with a space stay as they are.
func wrap(text string, columns int) string {
	var lines []string
	open := false // whether words may be added to the last line
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == ' ' {
			lines = append(lines, line)
			open = false
			continue
		}
		for word := range strings.FieldsSeq(line) {
			last := len(lines) - 1
			if open && utf8.RuneCountInString(lines[last])+1+utf8.RuneCountInString(word) <= columns {
				lines[last] += " " + word
				continue
			}
			lines = append(lines, word)
			open = true
		}
	}
	return strings.Join(lines, "\n")
}
