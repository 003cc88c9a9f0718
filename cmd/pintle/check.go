package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/plane"
)

type checkCmd struct {
	Data   string
	Repair bool
}

func (c *checkCmd) define(f flags) {
	f.path(&c.Data, "data", "DIRECTORY", "~/.pintle", "Data directory of a control plane, which must be stopped.")
	f.BoolVar(&c.Repair, "repair", false, "Repair damaged files: keep everything readable, and save the damaged files as *.damaged.")
}

func (c *checkCmd) verb() *cobra.Command {
	cmd := newVerb(
		"check [flags]", "Find and repair damaged files in the data directory of a stopped control plane.", noArguments, c.Run,
	)
	c.define(flags{cmd.Flags()})
	return cmd
}

// Run reads everything in a data directory. It exits with 1 if something is damaged and wasn't repaired.
func (c *checkCmd) Run(ctx context.Context) error {
	if err := checkStores(c.Data); err != nil {
		return err
	}
	damage, err := plane.Check(ctx, c.Data, c.Repair)
	printDamage(os.Stdout, damage, c.Repair)
	switch {
	case err != nil:
		return err
	case len(damage) == 0:
		fmt.Printf("All is well in %s.\n", c.Data)
	case c.Repair:
		fmt.Printf("Repaired. What was damaged is kept beside, in files named *.damaged.\n")
	default:
		fmt.Printf("Nothing was changed. To repair it: pintle check --data %s --repair\n", c.Data)
		return exitCode(1)
	}
	return nil
}

func printDamage(w io.Writer, damage []file.Damage, repaired bool) {
	if len(damage) == 0 {
		return
	}
	header := "A REPAIR"
	if repaired {
		header = "THE REPAIR"
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "FILE\tBYTE\tWHAT IS WRONG\t%s\n", header) //nolint:errcheck // as for everything that we print
	for _, d := range damage {
		offset := "-"
		if d.Offset >= 0 {
			offset = fmt.Sprint(d.Offset)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", d.Path, offset, d.What, d.Repair) //nolint:errcheck // as above
	}
	table.Flush() //nolint:errcheck // as above
}
